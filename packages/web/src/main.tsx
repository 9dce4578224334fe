import { render } from "preact";
render(<h1>Queen</h1>, document.body);
import "./style/base.css";
