import { render } from "preact";
import { resume } from "./api/session.ts";
import { App } from "./app.tsx";

render(<App />, document.getElementById("app") as HTMLElement);
void resume();
