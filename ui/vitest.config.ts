import { defineConfig } from "vitest/config";

// Pure logic alone: what needs a browser is tested in one (tests/).
export default defineConfig({ test: { environment: "node", include: ["src/**/*.test.ts"] } });
