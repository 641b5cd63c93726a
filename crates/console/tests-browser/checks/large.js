// A table of more pages than are read at once. `run million` browses one of a million rows.

import { browse } from "../browse.js";

export default async function (check, browser) {
  await check("large: the right rows are shown wherever the grid stands, and few of them are held", () => browse(browser, 12_000, 30, () => undefined));
}
