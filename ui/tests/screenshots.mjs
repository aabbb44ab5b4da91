// The pictures of the documents: `node screenshots.mjs TRACE`.

import { join } from "node:path";
import { launch, serve, settled, visit } from "./support.mjs";

const docs = join(import.meta.dirname, "../../docs");
const [trace] = process.argv.slice(2);
const server = await serve([trace]);
const browser = await launch();
const { page } = await visit(browser, server.url, { colorScheme: "light" });
await settled(page);
await page.waitForSelector(".problems");
await page.waitForTimeout(500);
await page.screenshot({ path: join(docs, "open.png") });
await browser.close();
server.stop();
