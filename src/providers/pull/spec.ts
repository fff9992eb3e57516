import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** How a stream is pulled. Times in milliseconds, 0: never. */
const PullSpec = Type.Object({
  /** At least one, tried in order. */
  urls: Type.Array(Type.String(), { minItems: 1 }),
  /** Whether the stream is published as its origin describes it, without output profiles. */
  relay: Type.Boolean(),
  /** Without input for so long the next URL is tried. */
  noInputFailoverMs: Type.Number(),
  /** Without viewers for so long it is ended; not when it is persistent. */
  unusedMs: Type.Number(),
  /** Rounds through the URLs before it is given up; not when it is persistent. */
  retryCount: Type.Number(),
  /** How often the first URL is tried while another is in use. */
  failbackMs: Type.Number(),
  /** Whether the URL comes from the store in which origins list their streams. */
  isFromStore: Type.Boolean(),
  /** Sender reports do not tell how tracks are to each other; of RTSP. Absent in what older versions left. */
  ignoresReports: Type.Optional(Type.Boolean()),
});
export type PullSpec = Static<typeof PullSpec>;

/** Request for a pull. */
export interface PullOrder {
  readonly spec: PullSpec;
  /** Whether the pull is retried without end. */
  readonly persistent: boolean;
}

/** A timer takes no more. */
const MAX_MS = 2 ** 31 - 1;

/** undefined for what a node of another version may have left. */
export function readSpec(json: unknown): PullSpec | undefined {
  if (!Value.Check(PullSpec, json)) return undefined;
  const { noInputFailoverMs, unusedMs, failbackMs } = json;
  return {
    ...json,
    noInputFailoverMs: Math.min(noInputFailoverMs, MAX_MS),
    unusedMs: Math.min(unusedMs, MAX_MS),
    failbackMs: Math.min(failbackMs, MAX_MS),
  };
}
