/** The web page of the broker. */
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { readSession } from "./session.ts";

void readSession();
render(<App />, document.body);
