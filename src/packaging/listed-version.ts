/** EXT-X-VERSION that EXT-X-GAP needs (RFC 8216bis section 8). What may come to list gaps has it from the beginning: it must not change (6.2.1). */
export const GAP_VERSION = 8;
/** EXT-X-VERSION that EXT-X-SKIP needs. */
export const SKIP_VERSION = 9;

/** EXT-X-VERSION of a media playlist for players that may know no higher one than it needs. @param version of the same one without gaps */
export function listedVersion(version: number, hasGaps: boolean): number {
  return hasGaps ? Math.max(version, GAP_VERSION) : version;
}
