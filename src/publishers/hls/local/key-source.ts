import type { DrmKey } from '../../../config/drm-info.ts';

/** A further key of a stream, or why there is none yet. */
export type FurtherKey =
  | { readonly key: DrmKey; readonly problem?: string | undefined }
  | { readonly key: undefined; readonly problem: string };

/** Keys of one stream, in the order of their use. */
export interface KeySource {
  /** Key that the stream begins with; undefined while there is none, and the stream is in clear. */
  readonly first: DrmKey | undefined;
  /** Number of the period of the present key; undefined where keys have no such number. */
  readonly period: number | undefined;
  /**
   * Time of the first rotation of a stream that continues no other, in milliseconds since the epoch.
   * @param periodMs time between two rotations
   */
  firstRotation(now: number, periodMs: number): number;
  /** Takes the key after the present one. With a `problem`, it is one that was known before. */
  next(present: DrmKey): FurtherKey;
  /** Idempotent. */
  close(): void;
}
