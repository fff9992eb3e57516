import type { Interstitial } from '../core/interstitial.ts';

/** A break that a splice begins, for which players may be given an interstitial. */
export interface SplicedBreak {
  /** SCTE 35 event id. */
  readonly eventId: number | undefined;
  /** Milliseconds; undefined where the splice has none. */
  readonly durationMs: number | undefined;
  /** Milliseconds since the epoch. */
  readonly date: number;
}

/** Attributes of EXT-X-DATERANGE for an interstitial (RFC 8216bis, appendix D), with a comma in front of each. */
export function interstitialAttributes(facts: Interstitial): string {
  const attributes = [
    facts.duration === undefined ? '' : `DURATION=${seconds(facts.duration)}`,
    facts.assetUri === undefined ? `X-ASSET-LIST="${facts.assetList}"` : `X-ASSET-URI="${facts.assetUri}"`,
    facts.resumeOffset === undefined ? '' : `X-RESUME-OFFSET=${seconds(facts.resumeOffset)}`,
    facts.playoutLimit === undefined ? '' : `X-PLAYOUT-LIMIT=${seconds(facts.playoutLimit)}`,
    facts.snap === undefined ? '' : `X-SNAP="${enumerated(facts.snap)}"`,
    facts.restrict === undefined ? '' : `X-RESTRICT="${enumerated(facts.restrict)}"`,
  ].filter((attribute) => attribute !== '');
  return `,CLASS="com.apple.hls.interstitial",${attributes.join()}`;
}

function enumerated(names: readonly string[]): string {
  return names.join().toUpperCase();
}

function seconds(milliseconds: number): string {
  return String(milliseconds / 1000);
}
