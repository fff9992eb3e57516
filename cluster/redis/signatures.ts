import { sign, signerOf, type Secrets } from '../peer/mac.ts';

/** An entry of the configuration as Redis has it. */
export interface SignedEntry {
  readonly revision: number;
  /** JSON. */
  readonly value: string;
  /** Only the former secret has signed it: a node that knows the present one alone would reject it. */
  readonly needsSigning: boolean;
}

/**
 * Signs entries of the configuration and rows of nodes in Redis, and checks that they come from a node of the cluster. A MAC covers the name
 * of the cluster, what the text stands for, and the text: it is valid for no other key, revision or incarnation. While the
 * secret is being changed there is one by each, so that nodes that know only one of them accept it.
 */
export class Signatures {
  readonly #cluster: string;
  readonly #secrets: Secrets;

  /** @param cluster its name */
  constructor(cluster: string, secrets: Secrets) {
    this.#cluster = cluster;
    this.#secrets = secrets;
  }

  /** `MAC value`, which is kept after the revision. @param value JSON */
  signEntry(key: string, revision: number, value: string): string {
    return `${sign(this.#secrets, 'entry', this.#text(key, String(revision), value))} ${value}`;
  }

  /** @returns undefined when it is malformed, or no node of the cluster has made it for this key */
  readEntry(key: string, text: string): SignedEntry | undefined {
    const [, revision = '', proof = '', value = ''] = /^([1-9]\d{0,15}) (\S+) (.*)$/s.exec(text) ?? [];
    const signer = signerOf(this.#secrets, 'entry', this.#text(key, revision, value), proof);
    if (signer === undefined) return undefined;
    return { revision: Number(revision), value, needsSigning: signer !== this.#secrets[0] };
  }

  /** `MAC description`, which is kept after the incarnation. @param description JSON */
  signRow(id: string, incarnation: string, description: string): string {
    return `${sign(this.#secrets, 'row', this.#text(id, incarnation, description))} ${description}`;
  }

  /** @returns the description; undefined when no node of the cluster has made it for this incarnation */
  readRow(id: string, incarnation: string, text: string): string | undefined {
    const [, proof = '', description = ''] = /^(\S+) (.*)$/s.exec(text) ?? [];
    const signer = signerOf(this.#secrets, 'row', this.#text(id, incarnation, description), proof);
    return signer === undefined ? undefined : description;
  }

  #text(...parts: readonly string[]): string {
    return JSON.stringify([this.#cluster, ...parts]);
  }
}
