import { clientOf } from '../../../lib/client-of.ts';
import type { Logger } from '../../../log/log.ts';
import type { SrtAddress } from '../address.ts';
import { GroupIds } from './group-ids.ts';
import { SrtlaGroup, type SrtlaPath } from './group.ts';
import { SrtlaLink } from './link.ts';
import { readPacket, TYPE, writeId, writeShort } from './packet.ts';

export interface SrtlaReceiverOptions {
  /** Opens the way of a group to the SRT port. @param received called with what comes from there */
  readonly open: (received: (data: Buffer) => void) => Promise<SrtlaPath>;
  readonly log: Logger;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/** Sender of a packet. */
export interface SrtlaSource extends SrtAddress {
  /** Port of this server. */
  readonly local: number;
  readonly send: (data: Buffer) => void;
}

/** `clientGroups` and `clientLinks` are of one address: rigs of one mobile network may share it. */
const LIMITS = { groups: 512, links: 16, clientGroups: 32, clientLinks: 64 } as const;
const SWEEP_MS = 1000;
/** A link that is not heard for this long is gone. Senders keep theirs alive about once a second. */
const LINK_MS = 4000;
/** A group without links is kept for this long: a rig may lose all its links for some seconds. */
const GROUP_MS = 10_000;
const LINKED = writeShort(TYPE.linked);
const BUSY = writeShort(TYPE.busy);
const NO_GROUP = writeShort(TYPE.noGroup);

/**
 * Receiver of SRTLA: registers the links of senders in groups, acknowledges what each receives, and passes the packets of a
 * group on to an SRT port as of one caller. No answer is longer than its request, and who is not registered gets none but to a
 * registration.
 */
export class SrtlaReceiver {
  readonly #options: SrtlaReceiverOptions;
  readonly #now: () => number;
  readonly #ids = new GroupIds();
  /** By name, and by the address from which the SRT port hears them. */
  readonly #groups = new Map<string, SrtlaGroup>();
  readonly #paths = new Map<string, SrtlaGroup>();
  readonly #members = new Map<string, SrtlaGroup>();
  /** Client that each group belongs to: the address of its first link. */
  readonly #owners = new Map<SrtlaGroup, string>();
  readonly #clientLinks = new Map<string, number>();
  readonly #timer = setInterval(() => this.sweep(), SWEEP_MS).unref();

  constructor(options: SrtlaReceiverOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get groups(): number {
    return this.#groups.size;
  }

  get links(): number {
    return this.#members.size;
  }

  /** The sender behind an address from which the SRT port is called; undefined for other callers. */
  senderAt(caller: SrtAddress): SrtAddress | undefined {
    return this.#paths.get(pathKey(caller))?.peer;
  }

  receive(data: Buffer, source: SrtlaSource): void {
    const packet = readPacket(data);
    if (packet === undefined) return;
    const now = this.#now();
    const key = `${source.local} ${source.address} ${source.port}`;
    if (packet.kind === 'group') return this.#request(packet.id, key, source, now);
    if (packet.kind === 'link') return this.#register(packet.id, key, source, data.length, now);
    const group = this.#members.get(key);
    const link = group?.links.get(key);
    if (group === undefined || link === undefined) return;
    group.heard = now;
    link.received(data.length, now);
    // some senders have figures in it, which they want back
    if (packet.kind === 'keepAlive') return link.send(data);
    if (packet.kind === 'data') link.data(packet.sequence);
    group.forward(data, link);
  }

  /** Forgets links and groups that were not heard for too long. */
  sweep(): void {
    const now = this.#now();
    for (const [name, group] of this.#groups) {
      for (const [key, { heard }] of group.links) if (now - heard > LINK_MS) this.#unlink(group, key, 'is silent');
      if (group.links.size === 0 && now - group.heard > GROUP_MS) this.#end(name, group);
    }
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    for (const [name, group] of this.#groups) this.#end(name, group);
  }

  #request(id: Buffer, key: string, source: SrtlaSource, now: number): void {
    const isFull = this.#objection(undefined, source) !== undefined;
    source.send(isFull || this.#members.has(key) ? BUSY : writeId(this.#ids.issue(id, now)));
  }

  #register(id: Buffer, key: string, source: SrtlaSource, bytes: number, now: number): void {
    const name = this.#ids.nameOf(id);
    if (name === undefined) return source.send(NO_GROUP);
    const known = this.#groups.get(name);
    if (known === undefined && !this.#ids.isFresh(id, now)) return source.send(NO_GROUP);
    const other = this.#members.get(key);
    if (other !== undefined && other !== known) return source.send(BUSY);
    const old = known?.links.get(key);
    if (old !== undefined) {
      old.received(bytes, now);
      if (known?.path !== undefined) old.send(LINKED);
      return;
    }
    const objection = this.#objection(known, source);
    if (objection !== undefined) {
      this.#options.log.debug({ remote: source.address }, `SRTLA link refused: ${objection}`);
      return source.send(BUSY);
    }
    const group = known ?? this.#begin(name, source, now);
    this.#link(group, key, source, bytes, now);
  }

  /** Reason to reject one more link; undefined while there is room. */
  #objection(group: SrtlaGroup | undefined, { address }: SrtlaSource): string | undefined {
    const client = clientOf(address);
    if ((this.#clientLinks.get(client) ?? 0) >= LIMITS.clientLinks) return 'its address has too many links';
    if (group !== undefined) return group.links.size < LIMITS.links ? undefined : 'its group has too many links';
    if (this.#groups.size >= LIMITS.groups) return 'there are too many groups';
    const owned = [...this.#owners.values()].filter((owner) => owner === client).length;
    return owned < LIMITS.clientGroups ? undefined : 'its address has too many groups';
  }

  #begin(name: string, { address }: SrtlaSource, now: number): SrtlaGroup {
    const group = new SrtlaGroup(now);
    this.#groups.set(name, group);
    this.#owners.set(group, clientOf(address));
    void this.#open(name, group);
    return group;
  }

  /** Its links are notified when its packets can be passed on. */
  async #open(name: string, group: SrtlaGroup): Promise<void> {
    try {
      const path = await this.#options.open((data) => group.answer(data));
      if (group.closed) return path.close();
      group.path = path;
      this.#paths.set(pathKey(path.local), group);
      for (const link of group.links.values()) link.send(LINKED);
    } catch (error) {
      this.#options.log.error({ err: error }, 'an SRTLA group cannot reach the SRT port');
      this.#end(name, group);
    }
  }

  #link(group: SrtlaGroup, key: string, { address, port, send }: SrtlaSource, bytes: number, now: number): void {
    const link = new SrtlaLink({ address, port }, send, now);
    const client = clientOf(address);
    group.heard = now;
    group.add(key, link);
    this.#members.set(key, group);
    this.#clientLinks.set(client, (this.#clientLinks.get(client) ?? 0) + 1);
    link.received(bytes, now);
    if (group.path !== undefined) link.send(LINKED);
    this.#options.log.debug({ remote: address, links: group.links.size }, 'SRTLA link registered');
  }

  #unlink(group: SrtlaGroup, key: string, reason: string): void {
    const link = group.links.get(key);
    if (link === undefined) return;
    const client = clientOf(link.peer.address);
    const left = (this.#clientLinks.get(client) ?? 1) - 1;
    group.delete(key);
    this.#members.delete(key);
    if (left > 0) this.#clientLinks.set(client, left);
    else this.#clientLinks.delete(client);
    const { packets, bytes } = link;
    this.#options.log.debug({ remote: link.peer.address, packets, bytes }, `SRTLA link ${reason}`);
  }

  #end(name: string, group: SrtlaGroup): void {
    const { path, most: links, packets, bytes } = group;
    for (const key of group.links.keys()) this.#unlink(group, key, 'closed');
    this.#groups.delete(name);
    this.#owners.delete(group);
    if (path !== undefined) this.#paths.delete(pathKey(path.local));
    group.close();
    this.#options.log.debug({ remote: group.peer?.address, links, packets, bytes }, 'SRTLA group closed');
  }
}

function pathKey({ address, port }: SrtAddress): string {
  return `${address} ${port}`;
}
