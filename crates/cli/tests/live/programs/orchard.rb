# Waits and computes in methods that a test knows. The argument is how many seconds to let pass before,
# or "hang" to wait in them for good.

class Orchard
  def self.harvest(seconds, turns)
    new.climb(seconds, turns)
  end

  def climb(seconds, turns)
    turns.times { pick(seconds) }
  end

  def pick(seconds)
    sleep(seconds)
  end

  def self.mill(seconds)
    [seconds].each { |it| new.press(it) }
  end

  def press(seconds)
    crush(Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds)
  end

  def crush(till)
    sum = 0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
      1000.times { |i| sum += i * i }
    end
    sum
  end
end

Orchard.harvest(1000, 1) if ARGV[0] == "hang"
sleep(ARGV[0].to_f)
Orchard.harvest(0.02, 20)
Orchard.mill(0.5)
