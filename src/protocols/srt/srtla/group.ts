import type { SrtAddress } from '../address.ts';
import type { SrtlaLink } from './link.ts';
import { isFeedback } from './packet.ts';

/** Way of one group to the SRT port. */
export interface SrtlaPath {
  /** Address from which the SRT port hears this group. */
  readonly local: SrtAddress;
  send(data: Buffer): void;
  close(): void;
}

/** Links of one sender, which carry one SRT caller. */
export class SrtlaGroup {
  /** By the key of their address. */
  readonly links = new Map<string, SrtlaLink>();
  /** Undefined until it is open. */
  path: SrtlaPath | undefined;
  heard: number;
  closed = false;
  /** Most links at a time. */
  most = 0;
  packets = 0;
  bytes = 0;
  /** Link from which the caller was heard last. */
  #latest: SrtlaLink | undefined;
  /** Where it was heard last, though that link may be gone. */
  #peer: SrtAddress | undefined;

  constructor(now: number) {
    this.heard = now;
  }

  /** Address of the link from which the caller was heard last. */
  get peer(): SrtAddress | undefined {
    return this.#peer;
  }

  /** Passes on a packet of the caller. */
  forward(data: Buffer, link: SrtlaLink): void {
    this.#latest = link;
    this.#peer = link.peer;
    this.packets++;
    this.bytes += data.length;
    this.path?.send(data);
  }

  /** Passes on a packet of the SRT port. */
  answer(data: Buffer): void {
    if (!isFeedback(data)) return this.#latest?.send(data);
    for (const link of this.links.values()) link.send(data);
  }

  add(key: string, link: SrtlaLink): void {
    this.links.set(key, link);
    this.most = Math.max(this.most, this.links.size);
  }

  delete(key: string): void {
    const link = this.links.get(key);
    if (!this.links.delete(key) || link !== this.#latest) return;
    // answers go to the one that was heard last of those that are left
    this.#latest = [...this.links.values()].toSorted((one, other) => other.heard - one.heard)[0];
  }

  close(): void {
    this.closed = true;
    this.path?.close();
  }
}
