import { defineConfig } from "vite";
import solid from "vite-plugin-solid";

// The server's content security policy allows no inline style and no inline script.
export default defineConfig({
  plugins: [solid()],
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  worker: { format: "es" },
});
