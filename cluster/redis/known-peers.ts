import { DurableFile } from '../durable-file.ts';
import type { Json } from '../types.ts';

/** Version of the file's layout: `{version, peers: [{id, address}]}`. */
const VERSION = 1;

/** Another node, and where its cluster port is reached. */
export interface KnownPeer {
  readonly id: string;
  readonly address: string;
}

type Content = { readonly [key: string]: Json };

export interface KnownPeersOptions {
  /** undefined keeps nothing. */
  readonly file: string | undefined;
  /** Called for a file that could not be read and was renamed. */
  readonly onDamaged: (movedTo: string, reason: string) => void;
  readonly onFault: (error: Error) => void;
}

/** The nodes last known, on disk: a node that starts without Redis asks them who owns what. */
export class KnownPeers {
  readonly #file: DurableFile | undefined;
  readonly #onFault: (error: Error) => void;
  #last: string;
  #writing: Promise<void> = Promise.resolve();
  /** As they were when this node ended; undefined when it has never heard of a cluster. */
  readonly initial: readonly KnownPeer[] | undefined;

  private constructor(
    file: DurableFile | undefined,
    initial: readonly KnownPeer[] | undefined,
    onFault: (error: Error) => void,
  ) {
    this.#file = file;
    this.initial = initial;
    this.#last = JSON.stringify(initial) ?? '';
    this.#onFault = onFault;
  }

  /** @throws StorageError when the file can be neither locked nor read */
  static async open({ file, onDamaged, onFault }: KnownPeersOptions): Promise<KnownPeers> {
    if (file === undefined) return new KnownPeers(undefined, undefined, onFault);
    const opened = await DurableFile.open(file, objection);
    if (opened.damaged !== undefined) onDamaged(opened.damaged.movedTo, opened.damaged.reason);
    return new KnownPeers(opened.file, opened.content?.peers as KnownPeer[] | undefined, onFault);
  }

  /** Keeps who is there now. Where the disk does not take it, the next change is tried anew. */
  keep(peers: readonly KnownPeer[]): void {
    const sorted = peers.map(({ id, address }) => ({ id, address })).sort((a, b) => (a.id < b.id ? -1 : 1));
    const text = JSON.stringify(sorted);
    if (this.#file === undefined || text === this.#last) return;
    this.#last = text;
    this.#writing = this.#writing.then(() => this.#write(sorted));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#file?.close();
  }

  async #write(peers: readonly { readonly id: string; readonly address: string }[]): Promise<void> {
    try {
      await this.#file?.write({ version: VERSION, peers });
    } catch (error) {
      this.#last = '';
      this.#onFault(error as Error);
    }
  }
}

function objection({ version, peers }: Content): string | undefined {
  if (version !== VERSION) return `its version is ${JSON.stringify(version)}, not ${VERSION}`;
  return Array.isArray(peers) && peers.every(isPeer) ? undefined : 'its peers are malformed';
}

function isPeer(peer: Json): boolean {
  if (typeof peer !== 'object' || peer === null || !('id' in peer && 'address' in peer)) return false;
  return typeof peer.id === 'string' && typeof peer.address === 'string' && URL.canParse(peer.address);
}
