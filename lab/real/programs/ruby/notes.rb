# Keeps notes and obeys its stdin: `add` adds one, `backup S` has a thread back them up, which waits
# S seconds for the disk to be free. Both take one Mutex.
$stdout.sync = true

NOTES = []
NOTES_MUTEX = Mutex.new

def now_ns
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def await_disk(seconds)
  sleep(seconds)
end

def backup(seconds)
  NOTES_MUTEX.synchronize do
    puts "backing up"
    await_disk(seconds)
  end
end

puts "ready"
$stdin.each_line do |line|
  word, seconds = line.split
  if word == "backup"
    Thread.new { backup(seconds.to_f) }.name = "backup"
    next
  end
  start = now_ns
  NOTES_MUTEX.synchronize { NOTES << "note" }
  puts "#{start} #{now_ns}"
end
