// Entry point of the console.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { isUnreachable, Problem } from "./api/client";
import { App } from "./app";
import { RequireSession } from "./session";
import { applyTheme } from "./theme";
import "./design/variables.css";
import "./design/base.css";
import "./design/page.css";
import "./design/runs.css";
import "./design/decide.css";
import "./design/govern.css";

applyTheme();
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Refused requests stay refused; an unreachable server may come back.
      retry: (failures, error) =>
        isUnreachable(error) || (!(error instanceof Problem) && failures < 2),
      retryDelay: (failures) => Math.min(5_000, 400 * 2 ** failures),
      refetchOnWindowFocus: false,
      staleTime: 5_000,
    },
  },
});
const root = document.getElementById("root");
if (!root) throw new Error("the page has a root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RequireSession>
        <App />
      </RequireSession>
    </QueryClientProvider>
  </StrictMode>,
);
