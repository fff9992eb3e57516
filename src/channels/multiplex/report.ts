import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** How a multiplex channel fares: the report of its task. */
const MultiplexReport = Type.Object({
  /** `Pulling`: it waits for its sources. */
  state: Type.Enum(['None', 'Pulling', 'Playing', 'Stopped']),
  /** What it waits for. */
  pullingMessage: Type.Optional(Type.String()),
});
export type MultiplexReport = Static<typeof MultiplexReport>;

/** undefined for none, and for what a node of another version tells. */
export function readMultiplexReport(json: unknown): MultiplexReport | undefined {
  return Value.Check(MultiplexReport, json) ? json : undefined;
}
