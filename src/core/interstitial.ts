import { MAX_BREAK_MS } from './cue.ts';

/** Values of X-SNAP and X-RESTRICT (RFC 8216bis, appendix D). */
const SNAPS = ['OUT', 'IN'] as const;
const RESTRICTIONS = ['SKIP', 'JUMP'] as const;
/** A length that servers and players everywhere take. */
const MAX_URL_CHARS = 2000;
const MAX_ID_CHARS = 100;

/**
 * An event of the INTERSTITIAL codec: players of HLS show an asset in place of the stream, or an asset list says which
 * (RFC 8216bis, appendix D). Times in milliseconds.
 */
export interface Interstitial {
  /** Unique in the stream; absent: one is made. */
  readonly id?: string;
  /** Exactly one of the two is given, as an absolute URL. */
  readonly assetUri?: string;
  readonly assetList?: string;
  /** From the event on until it begins. */
  readonly startOffset?: number;
  readonly duration?: number;
  /** Where the stream goes on, from its begin on; absent: players skip as much as they have shown. */
  readonly resumeOffset?: number;
  readonly playoutLimit?: number;
  readonly snap?: readonly (typeof SNAPS)[number][];
  readonly restrict?: readonly (typeof RESTRICTIONS)[number][];
}

/** An interstitial that cannot be sent. */
export class InterstitialError extends Error {
  override readonly name = 'InterstitialError';
}

/** Reads the data of an INTERSTITIAL packet; undefined where it is not one. */
export function readInterstitial(data: Buffer): Interstitial | undefined {
  try {
    return checkInterstitial(JSON.parse(data.toString()));
  } catch (error) {
    if (error instanceof InterstitialError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Checks an interstitial; other keys are left out, and values of lists may be in any case. @throws InterstitialError */
export function checkInterstitial(given: unknown): Interstitial {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new InterstitialError('an interstitial must be an object');
  const facts = given as Record<string, unknown>;
  const assetUri = urlOf(facts, 'assetUri');
  const assetList = urlOf(facts, 'assetList');
  if ((assetUri === undefined) === (assetList === undefined))
    throw new InterstitialError('assetUri or assetList is required, and not both');
  const made = {
    id: idOf(facts.id),
    assetUri,
    assetList,
    startOffset: timeOf(facts, 'startOffset'),
    duration: timeOf(facts, 'duration'),
    resumeOffset: timeOf(facts, 'resumeOffset'),
    playoutLimit: timeOf(facts, 'playoutLimit'),
    snap: listOf(facts, 'snap', SNAPS),
    restrict: listOf(facts, 'restrict', RESTRICTIONS),
  };
  return Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined)) as Interstitial;
}

/** Stands in a quoted string (RFC 8216bis 4.2). */
function idOf(id: unknown): string | undefined {
  if (id === undefined) return undefined;
  if (typeof id !== 'string' || id.length > MAX_ID_CHARS || !/^[\w.:@/+=-]+$/.test(id))
    throw new InterstitialError(`id must be 1 to ${MAX_ID_CHARS} letters, digits and ._:@/+=-`);
  return id;
}

/**
 * Writes the URL of an asset anew, so that it ends no quoted string and names no variable of a playlist (RFC 8216bis 4.2, 4.3);
 * undefined for what is not an http or https URL, or too long.
 */
export function assetUrl(given: string): string | undefined {
  const url = given.length > MAX_URL_CHARS ? null : URL.parse(given);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return undefined;
  const text = url.href.replaceAll('"', '%22').replaceAll('{', '%7B');
  return text.length > MAX_URL_CHARS ? undefined : text;
}

function urlOf(facts: Record<string, unknown>, key: 'assetUri' | 'assetList'): string | undefined {
  const given = facts[key];
  if (given === undefined) return undefined;
  const url = typeof given === 'string' ? assetUrl(given) : undefined;
  if (url === undefined)
    throw new InterstitialError(`${key} must be an http or https URL of at most ${MAX_URL_CHARS} characters`);
  return url;
}

function timeOf(facts: Record<string, unknown>, key: string): number | undefined {
  const value = facts[key];
  if (value === undefined) return undefined;
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > MAX_BREAK_MS)
    throw new InterstitialError(`${key} must be a whole number of milliseconds, of at most a day`);
  return value as number;
}

function listOf<Name extends string>(
  facts: Record<string, unknown>,
  key: string,
  names: readonly Name[],
): readonly Name[] | undefined {
  const value = facts[key];
  if (value === undefined) return undefined;
  const given = Array.isArray(value) ? value.map((one) => (typeof one === 'string' ? one.toUpperCase() : one)) : [];
  const isList = given.length > 0 && new Set(given).size === given.length;
  if (!isList || !given.every((one) => names.includes(one)))
    throw new InterstitialError(
      `${key} must be an array of ${names.map((name) => `"${name}"`).join(' and ')}, each at most once`,
    );
  return given as Name[];
}
