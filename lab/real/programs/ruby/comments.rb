# A web server for comments that takes one request after the other: `comments.rb PORT`. `/health`
# answers at once; `/post/S` takes a comment with so many blanks in it that to strip it takes S
# seconds, for the regular expression looks at each run of blanks from each of its blanks.
require "socket"

SAMPLE = 4000

def strip_comment(text)
  text.sub(/\s+$/, "")
end

# How long a comment of SAMPLE blanks takes. The time grows by the square of the blanks.
def time_of_sample
  clock = Process::CLOCK_THREAD_CPUTIME_ID
  start = Process.clock_gettime(clock)
  5.times { strip_comment("." + " " * SAMPLE + ".") }
  (Process.clock_gettime(clock) - start) / 5
end

SAMPLE_TOOK = time_of_sample

def serve(client)
  _, path, = (client.gets || "").split
  nil until (client.gets || "").strip.empty?
  if path && path.start_with?("/post/")
    seconds = path.split("/").last.to_f
    strip_comment("." + " " * (SAMPLE * Math.sqrt(seconds / SAMPLE_TOOK)).to_i + ".")
  end
  client.write("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
ensure
  client.close
end

server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
puts "ready"
$stdout.flush
loop { serve(server.accept) }
