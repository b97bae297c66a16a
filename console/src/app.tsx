// The frame of every page: navigation, account, and the connection state.
import { lazy, Suspense, useEffect, useRef } from "react";
import { Inbox } from "./approvals/inbox";
import { usePendingApprovals } from "./approvals/pending";
import { useConnection } from "./connection";
import { Empty, Loading } from "./parts/feedback";
import { Link, pageAt, useLocation } from "./route";
import { RunList } from "./runs/list";
import { signOut, usePermission, useSession } from "./session";
import { switchTheme, useTheme } from "./theme";
import { WorkflowList } from "./workflows/list";

const RunPage = lazy(() => import("./runs/detail"));
const Launch = lazy(() => import("./workflows/detail"));
const Governance = lazy(() => import("./governance/page"));
const Audit = lazy(() => import("./audit/page"));
const Cost = lazy(() => import("./cost/page"));
const Settings = lazy(() => import("./settings/page"));

function CurrentPage() {
  const here = pageAt(useLocation().split("?")[0] ?? "/");
  switch (here.name) {
    case "runs":
      return <RunList />;
    case "run":
      return <RunPage key={here.run} run={here.run} />;
    case "approvals":
      return <Inbox only={null} />;
    case "approval":
      return <Inbox only={here.approval} />;
    case "workflows":
      return <WorkflowList />;
    case "workflow":
      return <Launch key={here.workflow} name={here.workflow} />;
    case "governance":
      return <Governance part={here.part} />;
    case "audit":
      return <Audit />;
    case "cost":
      return <Cost />;
    case "settings":
      return <Settings />;
    case "not-found":
      return (
        <Empty title="Page not found">
          <Link href="/runs">All runs</Link>
        </Empty>
      );
  }
}

function Navigation() {
  const here = pageAt(useLocation().split("?")[0] ?? "/").name;
  const open = usePendingApprovals().data?.length ?? 0;
  const decides = usePermission("governance:read");
  const audits = usePermission("audit:read");
  const nav = useRef<HTMLElement>(null);
  // On a narrow screen the navigation scrolls: keep the current link visible.
  useEffect(() => {
    if (here && open >= 0)
      nav.current
        ?.querySelector("[aria-current]")
        ?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [here, open]);
  const current = (...names: string[]) =>
    names.includes(here) ? { "aria-current": "page" as const } : {};
  return (
    <nav aria-label="Pages" ref={nav}>
      <Link href="/runs" {...current("runs", "run")}>
        Runs
      </Link>
      {decides && (
        <Link href="/approvals" {...current("approvals", "approval")}>
          Approvals
          {open > 0 && (
            <span className="count">
              {open}
              <span className="sr"> open</span>
            </span>
          )}
        </Link>
      )}
      <Link href="/workflows" {...current("workflows", "workflow")}>
        Workflows
      </Link>
      {decides && (
        <Link href="/governance" {...current("governance")}>
          Governance
        </Link>
      )}
      {audits && (
        <Link href="/audit" {...current("audit")}>
          Audit
        </Link>
      )}
      {decides && (
        <Link href="/cost" {...current("cost")}>
          Cost
        </Link>
      )}
      <Link href="/settings" {...current("settings")}>
        Settings
      </Link>
    </nav>
  );
}

export function App() {
  const session = useSession();
  const connection = useConnection();
  const { shown } = useTheme();
  const roles = session.roles.join(", ");
  return (
    <div className="frame">
      <header>
        <Link href="/runs" className="brand" aria-label="Sluice">
          <img src="/favicon.svg" alt="" width="22" height="22" /> <span>Sluice</span>
        </Link>
        <Navigation />
        <span className="grow" />
        <span className="whoami muted small cut" title={`${session.organisation}: ${roles}`}>
          {session.principal} · {roles}
        </span>
        <button type="button" className="plain" onClick={switchTheme}>
          {shown === "dark" ? "Light" : "Dark"}
        </button>
        <button type="button" className="plain" onClick={signOut}>
          Sign out
        </button>
      </header>
      <main>
        <Suspense fallback={<Loading what="the page" />}>
          <CurrentPage />
        </Suspense>
      </main>
      <div className="gone" role="status">
        {connection === "gone" && (
          <p>The server does not respond. The page reconnects automatically.</p>
        )}
      </div>
    </div>
  );
}
