// What scene.c's painter does. `mix` has no frame of its own: its code is inlined into `shade`.
#include <cstdint>
#include <ctime>

namespace scene
{

[[gnu::always_inline]] inline std::uint64_t mix(std::uint64_t colour)
{
	for (int i = 0; i < 20000; i++) {
		colour = colour * 6364136223846793005 + 1442695040888963407;
		__asm__ volatile("" : "+r"(colour));
	}
	return colour;
}

std::uint64_t used_ns()
{
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<std::uint64_t>(t.tv_sec) * 1000000000 +
	       static_cast<std::uint64_t>(t.tv_nsec);
}

class Canvas
{
      public:
	// noipa: it keeps a frame of its own.
	[[gnu::noipa]] void shade(std::uint64_t until_ns)
	{
		while (used_ns() < until_ns)
			colour = mix(colour);
	}

      private:
	std::uint64_t colour = 1;
};

} // namespace scene

extern "C" void scene_render(std::uint64_t cpu_ns)
{
	scene::Canvas canvas;
	canvas.shade(scene::used_ns() + cpu_ns);
}
