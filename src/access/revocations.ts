import { hash, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import { Type, type Static } from 'typebox';
import Value from 'typebox/value';
import { ConflictError, joinKey, splitKey, type ConfigStore, type Json } from '#cluster';
import { kilnError } from '../errors.ts';
import { canonicalAddress } from '../lib/address.ts';
import { accessDenied, Denial } from './denial.ts';

/** First name of the keys of all revocations in the cluster's store: no virtual host has a name with `#`. */
const KIND = '#revocation';
/** At a time: those that are over make room. */
const MAX_REVOCATIONS = 1000;
const MARK_BYTES = 8;
/** Reason for the end of sessions. */
export const REVOKED = 'an operator has revoked it';

const DATE_TIME = '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$';
const text = (description: string, maxLength = 512) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

/** Revoked sessions have all that is given. */
const CRITERIA = {
  jti: text('`jti` of a token'),
  sub: text('`sub` of a token'),
  kid: text('`kid` of the key that a token is signed with, as the token names it'),
  address: text('Address of a client', 64),
  vhost: text('Virtual host of a stream', 255),
  app: text('Its application', 255),
  stream: text('Its name', 255),
};

/** Wish of an operator. */
export const RevocationRequest = Type.Object(
  {
    expires: Type.String({ pattern: DATE_TIME, description: 'Until when new sessions are refused (RFC 3339)' }),
    policy: text('Policy of signed URLs, as the URLs have it', 4096),
    ...CRITERIA,
  },
  { additionalProperties: false, examples: [{ jti: '4f1c', expires: '2099-12-24T18:00:00Z' }] },
);
export type RevocationRequest = Static<typeof RevocationRequest>;

/** A revocation as it is stored and shown: of a policy with its hash alone. */
export const Revocation = Type.Object(
  {
    id: Type.String(),
    expires: Type.String(),
    ...CRITERIA,
    policyHash: Type.Optional(Type.String({ description: 'First 64 bits of a hash, in base64url' })),
  },
  { additionalProperties: false },
);
export type Revocation = Static<typeof Revocation>;

/** Names of the stream of a session. */
export interface Place {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** A running session. */
export interface Revocable {
  readonly marks: readonly string[];
  readonly place: Place | undefined;
  revoke(reason: string): void;
}

/** Fields that one session has and others do not. */
type Field = 'jti' | 'sub' | 'kid' | 'policy' | 'address';

/** Stands for a text by which sessions are found: a short hash, which the session tokens of HLS carry on to other nodes. */
export function markOf(field: Field, value: string): string {
  const known = field === 'address' && isIP(value) !== 0 ? canonicalAddress(value) : value;
  return hash('sha256', `${field}\n${known}`, 'buffer').subarray(0, MARK_BYTES).toString('base64url');
}

/** A revocation of the present. */
interface Known {
  readonly revocation: Revocation;
  readonly until: number;
  readonly marks: readonly string[];
}

/**
 * Revocations by an operator, the same on every node: in the store of the cluster, so that nodes that start later have it, too.
 * Running sessions end with it, and new ones are refused until it is over.
 */
export class Revocations {
  readonly #sessions = new Set<Revocable>();
  #known = new Map<string, Known>();
  /** Each by one of its marks. */
  #byMark = new Map<string, Known[]>();
  #store: ConfigStore | undefined;
  #unlisten = (): void => {};
  /** Grows with each change: who was not revoked need not be looked at again before. */
  version = 0;
  /** Running sessions that were ended. */
  ended = 0;

  /** Takes over what the store has, now and from now on. */
  follow(store: ConfigStore): void {
    this.#store = store;
    this.#unlisten = store.listen((keys) => {
      if (keys.some(isOurs)) this.#read();
    });
    this.#read();
  }

  close(): void {
    this.#unlisten();
    this.#sessions.clear();
  }

  /** Revocations that are not over. */
  list(): Revocation[] {
    const now = Date.now();
    return [...this.#known.values()].flatMap(({ revocation, until }) => (until > now ? [revocation] : []));
  }

  /**
   * Revokes sessions on every node.
   * @throws revocationInvalid, tooManyRevocations, and what a ConfigStore throws
   */
  async add({ policy, ...wanted }: RevocationRequest): Promise<Revocation> {
    const { jti, sub, kid, address } = wanted;
    if ([policy, jti, sub, kid, address].every((value) => value === undefined))
      throw kilnError('revocationInvalid', 'One of [jti], [sub], [kid], [policy] and [address] is needed');
    if (address !== undefined && isIP(address) === 0)
      throw kilnError('revocationInvalid', '[address] is no address of IPv4 or IPv6');
    const until = Date.parse(wanted.expires);
    if (!(until > Date.now())) throw kilnError('revocationInvalid', '[expires] is no time to come');
    const store = this.#demandStore();
    await this.#makeRoom(store);
    const id = randomUUID();
    const policyHash = policy === undefined ? {} : { policyHash: markOf('policy', policy) };
    const revocation: Revocation = { id, ...wanted, expires: new Date(until).toISOString(), ...policyHash };
    await store.write([{ key: joinKey(KIND, id), value: revocation as Json, seen: 0 }]);
    this.#read();
    return revocation;
  }

  /** Takes one back: sessions that it has ended stay so. @returns false where there is none */
  async remove(id: string): Promise<boolean> {
    const store = this.#demandStore();
    if (!this.#known.has(id)) return false;
    await store.write([this.#removal(store, id)]);
    this.#read();
    return true;
  }

  /** Whether a session is revoked. */
  revokes(marks: readonly string[], place: Place): boolean {
    if (this.#known.size === 0) return false;
    const now = Date.now();
    const candidates = marks.flatMap((mark) => this.#byMark.get(mark) ?? []);
    return candidates.some(
      ({ revocation: { vhost = place.vhost, app = place.app, stream = place.stream }, until, marks: needed }) =>
        until > now &&
        vhost === place.vhost &&
        app === place.app &&
        stream === place.stream &&
        needed.every((mark) => marks.includes(mark)),
    );
  }

  /** Revocations, as far as sessions of one stream are concerned. */
  of(place: Place): { readonly version: number; revokes(marks: readonly string[]): boolean; count(): void } {
    const version = (): number => this.version;
    return {
      get version() {
        return version();
      },
      revokes: (marks) => this.revokes(marks, place),
      count: () => void this.ended++,
    };
  }

  /** @throws accessDenied for a client whose session would be revoked */
  check(marks: readonly string[], place: Place): void {
    if (this.revokes(marks, place)) throw accessDenied(new Denial('revoked', REVOKED));
  }

  /** Ends a session when it is revoked. */
  watch(session: Revocable): void {
    this.#sessions.add(session);
    // it may have been revoked since it was admitted
    this.#endIfRevoked(session);
  }

  unwatch(session: Revocable): void {
    this.#sessions.delete(session);
  }

  /** Removes those that are over. Another node may do the same. @throws tooManyRevocations */
  async #makeRoom(store: ConfigStore): Promise<void> {
    const now = Date.now();
    const expired = [...this.#known.values()].filter(({ until }) => until <= now);
    if (this.#known.size - expired.length >= MAX_REVOCATIONS) throw kilnError('tooManyRevocations', MAX_REVOCATIONS);
    try {
      if (expired.length > 0) await store.write(expired.map(({ revocation }) => this.#removal(store, revocation.id)));
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
    }
  }

  #demandStore(): ConfigStore {
    if (this.#store === undefined) throw kilnError('clusterUnavailable');
    return this.#store;
  }

  #removal(store: ConfigStore, id: string) {
    const key = joinKey(KIND, id);
    return { key, seen: store.entries().get(key)?.revision ?? 0 };
  }

  #read(): void {
    const known = new Map<string, Known>();
    for (const [key, { value }] of this.#store?.entries() ?? []) {
      // one with members that this version does not know is of fewer sessions than it would find
      if (!isOurs(key) || !Value.Check(Revocation, value)) continue;
      const marks = marksOf(value);
      if (marks.length > 0) known.set(value.id, { revocation: value, until: Date.parse(value.expires), marks });
    }
    this.#known = known;
    this.#byMark = Map.groupBy(known.values(), ({ marks: [mark = ''] }) => mark);
    this.version++;
    for (const session of [...this.#sessions]) this.#endIfRevoked(session);
  }

  #endIfRevoked(session: Revocable): void {
    if (session.place === undefined || !this.revokes(session.marks, session.place)) return;
    this.ended++;
    session.revoke(REVOKED);
  }
}

function isOurs(key: string): boolean {
  return splitKey(key)[0] === KIND;
}

function marksOf({ jti, sub, kid, address, policyHash }: Revocation): string[] {
  const given = { jti, sub, kid, address };
  const marks = Object.entries(given).flatMap(([field, value]) =>
    value === undefined ? [] : [markOf(field as Field, value)],
  );
  return policyHash === undefined ? marks : [...marks, policyHash];
}
