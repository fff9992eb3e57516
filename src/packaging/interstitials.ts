import type { Interstitial } from '../core/interstitial.ts';
import { decimal } from './date-range.ts';

/** A break that a splice begins, for which players may be given an interstitial. */
export interface SplicedBreak {
  /** SCTE 35 event id. */
  readonly eventId: number | undefined;
  /** Milliseconds; undefined where the splice has none. */
  readonly durationMs: number | undefined;
  /** Milliseconds since the epoch. */
  readonly date: number;
}

/** Attributes of EXT-X-DATERANGE for an interstitial, but for those that every date range has (RFC 8216bis, appendix D). */
export function interstitialAttributes(facts: Interstitial): readonly string[] {
  const { assetUri, assetList, resumeOffset, playoutLimit, snap, restrict } = facts;
  return [
    'CLASS="com.apple.hls.interstitial"',
    assetUri === undefined ? `X-ASSET-LIST="${assetList}"` : `X-ASSET-URI="${assetUri}"`,
    ...(resumeOffset === undefined ? [] : [`X-RESUME-OFFSET=${decimal(resumeOffset / 1000)}`]),
    ...(playoutLimit === undefined ? [] : [`X-PLAYOUT-LIMIT=${decimal(playoutLimit / 1000)}`]),
    ...(snap === undefined ? [] : [`X-SNAP="${snap.join()}"`]),
    ...(restrict === undefined ? [] : [`X-RESTRICT="${restrict.join()}"`]),
  ];
}
