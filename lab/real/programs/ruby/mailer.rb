# Sends mail: `mailer.rb PORT` puts a mail into a queue that has room for three, for each line of its
# stdin; a thread takes them out and has the server at PORT deliver each, which takes as many seconds
# as the mail says. `mails S` is six of them. Tells begin and end.
require "net/http"
$stdout.sync = true

PORT = ARGV[0].to_i
OUTBOX = SizedQueue.new(3)

def now_ns
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def deliver(seconds)
  Net::HTTP.start("127.0.0.1", PORT, read_timeout: 60) { |http| http.get("/#{seconds}") }
end

postman = Thread.new { loop { deliver(OUTBOX.pop) } }
postman.name = "postman"

puts "ready"
$stdin.each_line do |line|
  word, seconds = line.split
  start = now_ns
  if word == "mails"
    OUTBOX << seconds
    5.times { OUTBOX << "0" }
  else
    OUTBOX << "0"
  end
  puts "#{start} #{now_ns}"
end
