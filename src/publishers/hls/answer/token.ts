import { createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookSessionId } from '../../../access/webhook-session.ts';

export interface SessionTerms {
  /** Latest end, in milliseconds since the epoch; undefined: none. */
  readonly until?: number | undefined;
  /** Access control admitted it. */
  readonly guarded: boolean;
  /** Virtual host of the stream, where a guard redirected the player from another one. */
  readonly vhost?: string | undefined;
  /** Id of the node that counts the player; undefined: the owner of the stream does. */
  readonly home?: string | undefined;
  /** Closed when the session ends. */
  readonly openings: readonly WebhookSessionId[];
  /** Found by these when an operator revokes it. */
  readonly marks?: readonly string[] | undefined;
}

/**
 * Terms of a player that was admitted. Without access control its token has no marks: other nodes do not check it.
 * @param vhost as of `SessionTerms`
 */
export function termsOf(
  { until, openings, marks }: Pick<SessionTerms, 'until' | 'openings' | 'marks'>,
  guarded: boolean,
  vhost: string | undefined,
): SessionTerms {
  return { until, guarded, vhost, openings, ...(guarded && { marks }) };
}

/** Revocations by an operator, for the stream of the tokens. */
export interface RevokedTokens {
  /** Grows with each change. */
  readonly version: number;
  revokes(marks: readonly string[]): boolean;
  /** Counts a player that is refused from now on. */
  count(): void;
}

/** A player whose token was verified. */
export interface VerifiedPlayer {
  readonly token: string;
  /** `RevokedTokens.version` by then. */
  checked: number;
}

const NOTHING_REVOKED: RevokedTokens = { version: 0, revokes: () => false, count: () => {} };

export interface SessionClaims extends SessionTerms {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly issued: number;
}

/** Flags in the first byte of the claims: which fields follow. `VHOST` is the first bit, for `NAMES_VHOST`. */
const VHOST = 0x80;
const GUARDED = 1;
const UNTIL = 2;
const OPENINGS = 4;
/** Two MACs follow the claims, while the cluster's key is being changed. */
const TWO_MACS = 8;
const HOME = 16;
const MARKS = 32;
const KNOWN = VHOST | GUARDED | UNTIL | OPENINGS | TWO_MACS | HOME | MARKS;

const TIME_BYTES = 6;
const MAX_TIME = 2 ** (8 * TIME_BYTES) - 1;
const MAC_BYTES = 17;
/** Limit of the name of a virtual host that a token names. */
export const MAX_TEXT_BYTES = 255;
const MAX_OPENINGS = 8;
const MAX_MARKS = 8;
const MARK_BYTES = 8;
/** HTTP ports accept path elements of 1024 characters (`LIMITS.pathNameLength` in web/). */
const MAX_BYTES = 768;
const MAX_TOKEN_CHARS = (MAX_BYTES * 4) / 3;
const NO_SESSION = '-';
/** Version of the form. It is part of the key, so that tokens of other versions do not verify. */
const FORM = '2';
/** First characters in base64url when the first bit is set. */
const NAMES_VHOST = /^[g-z0-9_-]/;

/**
 * Session tokens of a stream: id, issue time and terms of a session under a MAC. Every node with the key accepts them without any
 * other knowledge of the session.
 */
export class SessionTokens {
  readonly #keys: readonly Buffer[];
  readonly #revoked: RevokedTokens;

  /**
   * @param keys one, or two during a change of keys: tokens have a MAC of each, for nodes that know only one
   * @param stream identity of the stream, the same on every node
   */
  constructor(keys: readonly Buffer[], stream: string, revoked = NOTHING_REVOKED) {
    this.#revoked = revoked;
    this.#keys = keys.map((key) => createHmac('sha256', key).update(`${FORM} ${stream}`).digest());
  }

  /**
   * Issues a token. Openings that do not fit are left out: a node that takes over the session does not learn of them.
   * @param id at most 128 ASCII characters
   * @throws RangeError for a virtual host whose name is longer than 255 bytes
   */
  issue(id: string, terms: SessionTerms, now = Date.now()): string {
    const { until, guarded, vhost } = terms;
    const home = terms.home === undefined ? undefined : text(terms.home);
    const named = vhost === undefined ? undefined : text(vhost);
    if (vhost !== undefined && named === undefined) throw new RangeError('the name of the virtual host is too long');
    const marks = (terms.marks ?? []).slice(0, MAX_MARKS).map((mark) => Buffer.from(mark, 'base64url'));
    const before = [
      time(now),
      ...(until === undefined ? [] : [time(until)]),
      ...(named === undefined ? [] : [named]),
      ...(home === undefined ? [] : [home]),
      ...(marks.length === 0 ? [] : [Buffer.of(marks.length), ...marks]),
    ];
    const name = Buffer.from(id, 'latin1');
    const left = MAX_BYTES - this.#keys.length * MAC_BYTES - 2 - sizeOf([...before, name]);
    const openings = fitting(terms.openings, left);
    const flags =
      (named === undefined ? 0 : VHOST) |
      (guarded ? GUARDED : 0) |
      (until === undefined ? 0 : UNTIL) |
      (openings.length === 0 ? 0 : OPENINGS) |
      (home === undefined ? 0 : HOME) |
      (marks.length === 0 ? 0 : MARKS) |
      (this.#keys.length > 1 ? TWO_MACS : 0);
    const counted = openings.length === 0 ? [] : [Buffer.of(openings.length), ...openings];
    const claims = Buffer.concat([Buffer.of(flags), ...before, ...counted, name]);
    return Buffer.concat([claims, ...this.#keys.map((key) => macOf(key, claims))]).toString('base64url');
  }

  /** Issues a token without a session, which leads to a stream of another virtual host. */
  route(vhost: string): string {
    return this.issue(NO_SESSION, { guarded: false, vhost, openings: [] }, 0);
  }

  isRoute(token: string): boolean {
    const claims = this.verify(token);
    return claims?.id === NO_SESSION && claims.issued === 0;
  }

  /** Reads a token of this stream; undefined for any other text, and for one that is revoked. */
  verify(token: string): SessionClaims | undefined {
    const bytes = decode(token);
    if (bytes === undefined) return undefined;
    const { claims, macs } = parted(bytes);
    const isOurs = this.#keys.some((key) => macs.some((mac) => timingSafeEqual(macOf(key, claims), mac)));
    const known = isOurs ? read(claims) : undefined;
    return known?.marks !== undefined && this.#revoked.revokes(known.marks) ? undefined : known;
  }

  /** Which state of the revocations `verify` goes by. */
  get version(): number {
    return this.#revoked.version;
  }

  /** Whether the token of a player has been revoked since it was verified. */
  isRevoked(player: VerifiedPlayer): boolean {
    if (player.checked === this.version) return false;
    player.checked = this.version;
    if (this.verify(player.token) !== undefined) return false;
    // those with openings are counted with their grants
    if (claimsOf(player.token)?.openings.length === 0) this.#revoked.count();
    return true;
  }
}

function macOf(key: Buffer, claims: Buffer): Buffer {
  return createHmac('sha256', key).update(claims).digest().subarray(0, MAC_BYTES);
}

function parted(bytes: Buffer): { readonly claims: Buffer; readonly macs: readonly Buffer[] } {
  const end = bytes.length - (((bytes[0] ?? 0) & TWO_MACS) === 0 ? MAC_BYTES : 2 * MAC_BYTES);
  if (end <= 0) return { claims: Buffer.alloc(0), macs: [] };
  const macs: Buffer[] = [];
  for (let at = end; at < bytes.length; at += MAC_BYTES) macs.push(bytes.subarray(at, at + MAC_BYTES));
  return { claims: bytes.subarray(0, end), macs };
}

export function namesVhost(text: string): boolean {
  return NAMES_VHOST.test(text);
}

/** Virtual host that an unverified token names, if any: the key to verify it with depends on that name. */
export function vhostOf(text: string): string | undefined {
  return namesVhost(text) ? claimsOf(text)?.vhost : undefined;
}

/** Reads a token without verifying it; undefined for malformed ones. */
export function claimsOf(text: string): SessionClaims | undefined {
  const bytes = decode(text);
  return bytes && read(parted(bytes).claims);
}

export function isOver({ until }: Pick<SessionTerms, 'until'>): boolean {
  return until !== undefined && until <= Date.now();
}

function decode(token: string): Buffer | undefined {
  if (token.length > MAX_TOKEN_CHARS) return undefined;
  const bytes = Buffer.from(token, 'base64url');
  // the decoder also accepts other spellings of the same bytes
  return bytes.length > MAC_BYTES && bytes.toString('base64url') === token ? bytes : undefined;
}

function read(claims: Buffer): SessionClaims | undefined {
  const flags = claims[0] ?? 0;
  if ((flags & ~KNOWN) !== 0) return undefined;
  let at = 1;
  const bytes = (length: number): Buffer => claims.subarray(at, (at += length));
  const number = (): number => {
    const found = bytes(TIME_BYTES);
    return found.length < TIME_BYTES ? 0 : found.readUIntBE(0, TIME_BYTES);
  };
  const string = (): string => bytes(1 + (claims[at] ?? 0)).toString('utf8', 1);
  const issued = number();
  const until = (flags & UNTIL) === 0 ? undefined : number();
  const vhost = (flags & VHOST) === 0 ? undefined : string();
  const home = (flags & HOME) === 0 ? undefined : string();
  const marks: string[] = [];
  const marked = (flags & MARKS) === 0 ? 0 : (bytes(1)[0] ?? 0);
  while (marks.length < marked && at < claims.length) marks.push(bytes(MARK_BYTES).toString('base64url'));
  const count = (flags & OPENINGS) === 0 ? 0 : (bytes(1)[0] ?? 0);
  const openings: WebhookSessionId[] = [];
  while (openings.length < count && at < claims.length) openings.push({ id: string(), vhost: string() });
  if (at >= claims.length) return undefined;
  const guarded = (flags & GUARDED) !== 0;
  const id = claims.toString('latin1', at);
  return { id, issued, until, guarded, vhost, home, openings, ...(marked > 0 && { marks }) };
}

function time(value: number): Buffer {
  const bytes = Buffer.alloc(TIME_BYTES);
  bytes.writeUIntBE(Math.max(0, Math.min(Math.floor(value), MAX_TIME)), 0, TIME_BYTES);
  return bytes;
}

/** Encodes a text after its length; undefined if it is too long. */
function text(value: string): Buffer | undefined {
  const bytes = Buffer.from(value);
  return bytes.length > MAX_TEXT_BYTES ? undefined : Buffer.concat([Buffer.of(bytes.length), bytes]);
}

/** @param room bytes */
function fitting(openings: readonly WebhookSessionId[], room: number): Buffer[] {
  const fit: Buffer[] = [];
  for (const { id, vhost } of openings.slice(0, MAX_OPENINGS)) {
    const [one, other] = [text(id), text(vhost)];
    if (one === undefined || other === undefined) continue;
    if (sizeOf(fit) + one.length + other.length <= room) fit.push(Buffer.concat([one, other]));
  }
  return fit;
}

function sizeOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}
