import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** State of a multiplex channel: the report of its task. */
const MultiplexReport = Type.Object({
  /** `Pulling`: waiting for its sources. */
  state: Type.Enum(['None', 'Pulling', 'Playing', 'Stopped']),
  /** Reason why it waits. */
  pullingMessage: Type.Optional(Type.String()),
});
export type MultiplexReport = Static<typeof MultiplexReport>;

/** undefined for no report, or a report of another version. */
export function readMultiplexReport(json: unknown): MultiplexReport | undefined {
  return Value.Check(MultiplexReport, json) ? json : undefined;
}
