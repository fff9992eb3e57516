import { UnreachableError, type Cluster, type NodeIdentity } from '#cluster';
import type { Packet } from '../core/packet.ts';
import type { Playlist } from '../core/playlist.ts';
import type { OutputStream, RelayedRun } from '../core/stream.ts';
import type { Track } from '../core/track.ts';
import type { Logger } from '../log/log.ts';
import { RELAY_SILENCE_MS, type RelayPrefix } from '../directory/relay-path.ts';
import type { RelayTree } from '../directory/relay-tree.ts';
import { ShunnedNodes } from '../directory/shunned-nodes.ts';
import type { StreamWatch } from '../directory/stream-changes.ts';
import type { Location } from '../directory/stream-directory.ts';
import { OvtError } from '../protocols/ovt/error.ts';
import type { Position } from '../protocols/ovt/message.ts';
import { OvtClient, type OvtClientOptions, type OvtSink } from '../providers/ovt/client.ts';
import { RelayClock } from './relay-clock.ts';
import { lookForPlace } from './relay-place.ts';
import { findBetterSender, findSender, isRelayFailure, type SenderSearch } from './find-sender.ts';
import type { RelayedStream } from './relayed-stream.ts';

export interface RelayOptions {
  readonly cluster: Pick<Cluster, 'self' | 'connect'>;
  readonly tree: Pick<RelayTree, 'parent' | 'has'>;
  /** Nodes that could not be connected to, for whatever stream. */
  readonly unreachable: ShunnedNodes;
  readonly log: Logger;
}

/** Who has a stream, and which node it comes from. */
interface Followed {
  readonly owner: NodeIdentity;
  readonly from: NodeIdentity;
}

/** What is known of a stream that is looked for. */
interface Wanted {
  /** Who had it last. */
  readonly owner?: NodeIdentity;
  /** It ended on purpose: only a node that has its name already can continue it, not a later one. */
  readonly forGood?: boolean;
  /** How long it is looked for as long as its owner cannot be reached. */
  readonly unreachableMs?: number;
}

const CONNECT_TIMEOUT_MS = 1500;
/** How long who wants to watch waits for a stream that its owner does not send. */
const OPEN_MS = 3000;
/** The same while the owner cannot be reached: it may have died, and another node may have the stream soon. */
const HELD_MS = 8000;
/** How long viewers of an interrupted stream are kept while another node may continue it. */
const CONTINUED_MS = 30_000;
const UNUSED_MS = 10_000;
/** Timers cannot wait longer. */
const LONGEST_MS = 2 ** 31 - 1;
/** Between attempts at a node that has the stream, by the directory, and does not serve it. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 1000;

/**
 * One output stream of another node, for the viewers of this one, and for nodes that relay it in turn. It comes from its owner,
 * or from a node that relays it; it follows the stream from owner to owner, and ends some seconds after the last of those that
 * it is for has left.
 */
export class Relay implements OvtSink {
  readonly #stream: RelayedStream;
  readonly #options: RelayOptions;
  readonly #log: Logger;
  readonly #clock = new RelayClock();
  /** Nodes that did not send the stream, or send it no more. */
  readonly #shunned = new ShunnedNodes();
  readonly #end = new AbortController();
  readonly #onClose: () => void;
  #output: OutputStream | undefined;
  #client: OvtClient | undefined;
  /** The node that was asked last. */
  #asked: string | undefined;
  /** While it plays. */
  #followed: Followed | undefined;
  /** Fails when the stream is not to be had. */
  #playing: Promise<void> | undefined;
  /** While it plays: hears of another owner. */
  #watching: StreamWatch | undefined;
  /** While it plays: aborted when it does not any more. */
  #interrupted: AbortController | undefined;
  #unused: NodeJS.Timeout | undefined;

  /** @param onClose called once */
  constructor(stream: RelayedStream, options: RelayOptions, onClose: () => void) {
    this.#stream = stream;
    this.#options = options;
    this.#log = options.log.child({ stream: `${stream.application.internalName}/${stream.name}` });
    this.#onClose = onClose;
  }

  /**
   * Resolves when the relay is announced on this node.
   * @throws OvtError, UnreachableError why there is none; then it is closed
   */
  async open({ owner }: Location): Promise<OutputStream> {
    try {
      this.#playing = this.#follow(OPEN_MS, { owner, unreachableMs: HELD_MS });
      return await this.playing();
    } catch (error) {
      this.close('the stream could not be opened');
      throw error;
    }
  }

  /**
   * Resolves when it plays, which may be after an interruption.
   * @throws OvtError, UnreachableError why it does not
   */
  async playing(): Promise<OutputStream> {
    await this.#playing;
    if (this.#output === undefined || this.#output.closed) throw new OvtError('the stream has ended');
    return this.#output;
  }

  /**
   * Idempotent.
   * @param how.forGood nodes that it is passed on to need not wait for the stream
   */
  close(reason: string, { forGood = false } = {}): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    clearTimeout(this.#unused);
    this.#watching?.close();
    this.#interrupted?.abort();
    this.#client?.close();
    if (forGood) this.#output?.input.end(reason);
    else this.#output?.input.close(reason);
    this.#log.info({ event: 'relay.ended', reason }, `the relay from another node has ended: ${reason}`);
    this.#onClose();
  }

  tracks(tracks: readonly Track[], playlists: readonly Playlist[]): void {
    if (this.#output !== undefined) return this.#update(this.#output, tracks, playlists);
    const { application, input, name } = this.#stream;
    const output = application.relay(input, name, { type: 'Ovt', kind: 'ovt' });
    this.#output = output;
    this.#update(output, tracks, playlists);
    output.on('viewers', () => this.#watch(output));
    output.once('close', (reason) => this.close(reason));
    application.announce(output);
    this.#log.info({ event: 'stream.relayed', node: this.#asked }, 'relayed from another node');
    this.#watch(output);
  }

  packet(packet: Packet): void {
    this.#output?.write(packet);
  }

  /** Called by the client: the node that sends it, or the way to it, has gone. */
  end(reason: string, forGood: boolean): void {
    const { parent } = this;
    // one that gets nothing itself because the stream has no owner is as good as any other
    const isToBlame =
      !forGood && this.#stream.owner !== undefined && parent !== undefined && this.#options.tree.has(parent);
    if (isToBlame) this.#shunned.add(parent);
    this.#interrupt(reason, forGood);
  }

  /** Looks for a node to go on with. */
  #interrupt(reason: string, forGood = false): void {
    const { parent } = this;
    this.#client = undefined;
    this.#followed = undefined;
    this.#watching?.close();
    this.#watching = undefined;
    this.#interrupted?.abort();
    if (this.#output === undefined) return;
    this.#output.interrupted = true;
    this.#log.info({ reason }, 'the relayed stream was interrupted: looking for the node that continues it');
    // the owner of a stream that was passed on may have it still
    const owner = parent && this.#stream.owner;
    this.#playing = this.#continue({ forGood, ...(owner && { owner }) });
    this.#playing.catch((error: Error) =>
      this.close(`the stream was not continued: ${error.message}`, { forGood: true }),
    );
  }

  /** Another node that relays the stream to this one; undefined while its owner sends it. */
  get parent(): NodeIdentity | undefined {
    const { owner, from } = this.#followed ?? {};
    return from?.incarnation === owner?.incarnation ? undefined : from;
  }

  /** The parent is about to go, or has gone. */
  leaveParent(): void {
    if (this.parent !== undefined) this.#leave(`node ${this.parent.id} is going`);
  }

  async #continue(wanted: Wanted): Promise<void> {
    await this.#follow(CONTINUED_MS, wanted);
    if (this.#end.signal.aborted) return;
    if (this.#output !== undefined) this.#output.interrupted = false;
    this.#log.info({ node: this.#asked }, 'the relayed stream continues');
  }

  /** Goes on with another node. */
  #leave(why: string): void {
    this.#client?.close();
    this.#interrupt(why);
  }

  #update(output: OutputStream, tracks: readonly Track[], playlists: readonly Playlist[]): void {
    const { run } = this.#clock;
    const isSame =
      output.run === run &&
      tracks.length === output.tracks.length &&
      tracks.every((one, i) => one === output.tracks[i]);
    output.setPlaylists(playlists);
    if (isSame) return;
    output.run = run;
    output.setTracks(tracks);
  }

  /**
   * Tries to play the stream from whichever node has it. Without an owner, waits for one to be heard of.
   * @throws OvtError, UnreachableError why the last attempt failed
   */
  async #follow(withinMs: number, wanted: Wanted): Promise<void> {
    const watch = this.#stream.watch();
    try {
      if (wanted.owner === undefined) await this.#stream.catchUp();
      const followed = await this.#tryUntil(withinMs, watch, wanted);
      if (this.#client !== undefined && followed !== undefined) void this.#stay(followed, watch);
    } finally {
      if (this.#watching !== watch) watch.close();
    }
  }

  /**
   * Goes on to another owner as soon as it is heard of: a host that has died is silent for longer than that. Who gets the
   * stream from a node that relays it stays there: that one goes on to the owner as soon.
   */
  async #stay(followed: Followed, watch: StreamWatch): Promise<void> {
    const { signal } = (this.#interrupted = new AbortController());
    const { self } = this.#options.cluster;
    this.#watching = watch;
    this.#followed = followed;
    lookForPlace(() => this.#improve(), signal).catch((error: Error) =>
      this.#log.error(
        { err: error },
        'a better node for a relayed stream could not be looked for: it stays where it is',
      ),
    );
    for (;;) {
      await watch.next(LONGEST_MS, signal);
      if (signal.aborted) return;
      const now = this.#stream.owner;
      const isOwned = now?.incarnation === this.#followed.owner.incarnation;
      const isKept = isOwned || (this.parent !== undefined && now?.id !== self.id);
      if (now !== undefined && !isKept) return this.#leave(`node ${now.id} has the stream now`);
    }
  }

  /** Goes on with the node that the stream is meant to come from, if that is another one and has it, too. */
  async #improve(): Promise<void> {
    const owner = this.#stream.owner;
    const { from } = this.#followed ?? {};
    if (from === undefined || owner === undefined || owner.id === this.#options.cluster.self.id) return;
    await findBetterSender(this.#search, this.#stream.key, owner, from, {
      hasRoom: async (node, prefix) => (await this.#connect(node, prefix)).close(),
      ask: (node, prefix) => this.#replaceSender({ owner, from: node }, prefix),
    });
  }

  /**
   * Has another node send the stream. The present one is kept until that one sends all that is missing.
   * @throws OvtError, UnreachableError, UnavailableError why the present one stays
   */
  async #replaceSender(next: Followed, prefix: RelayPrefix): Promise<void> {
    const present = this.#client;
    const tracks = this.#output?.tracks;
    const client = await this.#connect(next.from, prefix);
    await client.play({
      begin: (complete) => {
        const isAsBefore = this.#followed && this.#client === present && this.#output?.tracks === tracks;
        if (!complete || !isAsBefore) throw new OvtError('the stream would not go on where it is');
        present?.close();
        this.#client = client;
        this.#followed = next;
        this.#log.info({ node: next.from.id }, 'the relayed stream comes from a better node');
      },
      tracks: (told, playlists) => this.tracks(told, playlists),
      packet: (packet) => this.packet(packet),
      end: (reason, forGood) => this.end(reason, forGood),
    });
  }

  /** @returns undefined when the relay was closed meanwhile */
  async #tryUntil(
    withinMs: number,
    watch: StreamWatch,
    { owner = this.#stream.owner, forGood = false, unreachableMs = withinMs }: Wanted,
  ): Promise<Followed | undefined> {
    const { signal } = this.#end;
    const since = performance.now();
    for (let pause = FIRST_PAUSE_MS; ;) {
      const outcome = owner === undefined ? new OvtError('no node has the stream') : await this.#attempt(owner);
      if (signal.aborted) return undefined;
      if (!(outcome instanceof Error)) return outcome;
      const left = since + (outcome instanceof UnreachableError ? unreachableMs : withinMs) - performance.now();
      if (left <= 0) throw outcome;
      if (forGood && !this.#stream.isOwned) throw new OvtError('the stream has ended');
      const hasChanged = await watch.next(owner === undefined ? left : Math.min(pause, left), signal);
      pause = hasChanged ? FIRST_PAUSE_MS : Math.min(2 * pause, MAX_PAUSE_MS);
      owner = signal.aborted ? undefined : this.#stream.owner;
    }
  }

  /** @returns why it does not play otherwise */
  async #attempt(owner: NodeIdentity): Promise<Followed | Error> {
    const ask = (node: NodeIdentity, prefix: RelayPrefix): Promise<void> => this.#ask(node, prefix);
    try {
      return { owner, from: await findSender(this.#search, this.#stream.key, owner, ask) };
    } catch (error) {
      if (isRelayFailure(error)) return error;
      throw error;
    }
  }

  get #search(): SenderSearch {
    const { cluster, tree, unreachable } = this.#options;
    return { self: cluster.self, tree, shunned: this.#shunned, unreachable };
  }

  async #ask(node: NodeIdentity, prefix: RelayPrefix): Promise<void> {
    const client = await this.#connect(node, prefix);
    this.#asked = node.id;
    this.#client = client;
    if (this.#end.signal.aborted) client.close();
    else await client.play(this);
  }

  /** @throws OvtError, UnreachableError, UnavailableError why a node does not have the stream */
  async #connect(node: NodeIdentity, prefix: RelayPrefix): Promise<OvtClient> {
    const stream = await this.#options.cluster.connect(node, this.#stream.pathAt(prefix), CONNECT_TIMEOUT_MS);
    return OvtClient.connect({ stream, target: this.#stream.urlAt(node) }, this.#clientOptions);
  }

  get #clientOptions(): OvtClientOptions {
    const { run, tracks = [] } = this.#output ?? {};
    const after = run && this.#positionOf(run, tracks);
    return {
      log: this.#log,
      clock: this.#clock,
      plain: true,
      silenceMs: RELAY_SILENCE_MS,
      ...(run && { before: { run: run.id, tracks } }),
      ...(after && { after }),
    };
  }

  /** What comes in the order of the sender: who has a picture has all that came before it. */
  #positionOf({ id }: RelayedRun, tracks: readonly Track[]): Position | undefined {
    const ofType = (wanted: Track['type']): number[] =>
      tracks.filter(({ type }) => type === wanted).map((track) => track.id);
    const seconds = this.#clock.positionOf(ofType('video')) ?? this.#clock.positionOf(ofType('audio'));
    return seconds === undefined ? undefined : { run: id, seconds };
  }

  #watch(output: OutputStream): void {
    clearTimeout(this.#unused);
    if (output.watched || this.#end.signal.aborted) return;
    this.#unused = setTimeout(() => this.close('no viewers are left'), UNUSED_MS).unref();
  }
}
