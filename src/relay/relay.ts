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
  /** Nodes to which no connection could be made, for any stream. */
  readonly unreachable: ShunnedNodes;
  readonly log: Logger;
}

/** The owner of a playing stream, and its sender. */
interface Followed {
  readonly owner: NodeIdentity;
  readonly from: NodeIdentity;
}

interface Wanted {
  /** Last known. */
  readonly owner?: NodeIdentity;
  /** Set when the stream ended on purpose: only a node that already holds its name can continue it. */
  readonly forGood?: boolean;
  /** Time limit while the owner is unreachable. */
  readonly unreachableMs?: number;
}

const CONNECT_TIMEOUT_MS = 1500;
/** Time that a viewer waits for a stream that its owner does not send. */
const OPEN_MS = 3000;
/** Longer while the owner is unreachable: it may have died, and another node may soon have the stream. */
const HELD_MS = 8000;
/** Time that viewers of an interrupted stream are kept while another node may continue it. */
const CONTINUED_MS = 30_000;
const UNUSED_MS = 10_000;
/** Limit of Node's timers. */
const LONGEST_MS = 2 ** 31 - 1;
/** Between attempts at a node that owns the stream by the directory, but does not serve it. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 1000;

/**
 * One output stream of another node, for viewers of this node and for nodes that relay it in turn. The owner sends it, or a node
 * that relays it. The relay follows the stream from owner to owner, and ends `UNUSED_MS` after its last viewer or node has left.
 */
export class Relay implements OvtSink {
  readonly #stream: RelayedStream;
  readonly #options: RelayOptions;
  readonly #log: Logger;
  readonly #clock = new RelayClock();
  /** Nodes that failed to send the stream. */
  readonly #shunned = new ShunnedNodes();
  readonly #end = new AbortController();
  readonly #onClose: () => void;
  #output: OutputStream | undefined;
  #client: OvtClient | undefined;
  /** Id of the node that was asked last. */
  #asked: string | undefined;
  #followed: Followed | undefined;
  #playing: Promise<void> | undefined;
  #watching: StreamWatch | undefined;
  /** Aborted when the stream stops playing. */
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
   * Resolves when the stream plays, which may be after an interruption.
   * @throws OvtError, UnreachableError why it does not play
   */
  async playing(): Promise<OutputStream> {
    await this.#playing;
    if (this.#output === undefined || this.#output.closed) throw new OvtError('the stream has ended');
    return this.#output;
  }

  /**
   * Ends the relay. Idempotent.
   * @param how.forGood the nodes it feeds need not wait for the stream
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

  /** Handles the loss of the sender, or of the connection to it. */
  end(reason: string, forGood: boolean): void {
    const { parent } = this;
    // without an owner no sender gets anything: then this one is as good as any other
    const isToBlame =
      !forGood && this.#stream.owner !== undefined && parent !== undefined && this.#options.tree.has(parent);
    if (isToBlame) this.#shunned.add(parent);
    this.#interrupt(reason, forGood);
  }

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
    // after the loss of a parent the owner may still have the stream
    const owner = parent && this.#stream.owner;
    this.#playing = this.#continue({ forGood, ...(owner && { owner }) });
    this.#playing.catch((error: Error) =>
      this.close(`the stream was not continued: ${error.message}`, { forGood: true }),
    );
  }

  /** Node that relays the stream to this one; undefined while the owner sends it. */
  get parent(): NodeIdentity | undefined {
    const { owner, from } = this.#followed ?? {};
    return from?.incarnation === owner?.incarnation ? undefined : from;
  }

  /** Leaves a parent that is about to stop, or has stopped. */
  leaveParent(): void {
    if (this.parent !== undefined) this.#leave(`node ${this.parent.id} is going`);
  }

  async #continue(wanted: Wanted): Promise<void> {
    await this.#follow(CONTINUED_MS, wanted);
    if (this.#end.signal.aborted) return;
    if (this.#output !== undefined) this.#output.interrupted = false;
    this.#log.info({ node: this.#asked }, 'the relayed stream continues');
  }

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
   * Plays the stream from its owner or a relaying node. Waits for an owner if none is known.
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
   * Leaves for a new owner as soon as the directory names one, since the silence of a dead host takes longer to notice. With a
   * parent the relay stays: the parent follows the new owner just as soon.
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

  /** Moves to the sender that the relay tree prefers, if that is another node and it has the stream. */
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
   * Makes another node send the stream. The present sender is kept until that node sends all that is missing.
   * @throws OvtError, UnreachableError, UnavailableError why the present sender stays
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
      tracks: (changed, playlists) => this.tracks(changed, playlists),
      packet: (packet) => this.packet(packet),
      end: (reason, forGood) => this.end(reason, forGood),
    });
  }

  /** @returns undefined when the relay was closed during the attempts */
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

  /** @returns an expected error instead of throwing it */
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

  /** Position for resuming. Packets come in the sender's order: after a video frame, all that was sent before it is here. */
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
