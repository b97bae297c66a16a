// Where the data of a workflow can come from and go to, in the worst case.
import { type FlowPicture, labelText } from "./plan";

export function DataFlow({ flow }: { flow: FlowPicture }) {
  const steps = flow.steps.filter((step) => step.sources || step.sinks);
  return (
    <details className="document">
      <summary>Flow of data in the worst case</summary>
      <table>
        <thead>
          <tr>
            <th>Step</th>
            <th>Adds</th>
            <th>Can send</th>
          </tr>
        </thead>
        <tbody>
          {flow.arguments.map(({ name, labels }) => (
            <tr key={`args.${name}`}>
              <td>args.{name}</td>
              <td>{labelText(labels)}</td>
              <td />
            </tr>
          ))}
          {steps.map(({ id, sources = [], sinks = [] }) => (
            <tr key={id}>
              <td>{id}</td>
              <td>
                {sources.map(({ name, labels }) => (
                  <div key={name}>
                    {name}: {labelText(labels)}
                  </div>
                ))}
              </td>
              <td>
                {sinks.map(({ kind, name, sends_to, labels }) => (
                  <div key={`${kind} ${name}`}>
                    to {kind} {name} ({sends_to}): {labelText(labels) || "no labels"}
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
