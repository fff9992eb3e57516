import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** Definition of a pulled stream. Times in milliseconds, 0: never. */
const PullSpec = Type.Object({
  /** At least one, tried in order. */
  urls: Type.Array(Type.String(), { minItems: 1 }),
  /** Whether the stream is published as its origin describes it, without output profiles. */
  relay: Type.Boolean(),
  /** Time without input after which the next URL is tried. */
  noInputFailoverMs: Type.Number(),
  /** Time without viewers after which the stream ends, unless it is persistent. */
  unusedMs: Type.Number(),
  /** Rounds through the URLs before the pull fails, unless it is persistent. */
  retryCount: Type.Number(),
  /** Interval for retries of the first URL while another is in use. */
  failbackMs: Type.Number(),
  /** Whether the URL comes from the store in which origins list their streams. */
  isFromStore: Type.Boolean(),
  /** Whether tracks are aligned without sender reports; RTSP only. Absent in definitions of older versions. */
  ignoresReports: Type.Optional(Type.Boolean()),
});
export type PullSpec = Static<typeof PullSpec>;

/** Request for a pull. */
export interface PullOrder {
  readonly spec: PullSpec;
  /** Whether the pull is retried without end. */
  readonly persistent: boolean;
}

/** Longest time of a timer. */
const MAX_MS = 2 ** 31 - 1;

/** @returns undefined for a definition of an incompatible version */
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
