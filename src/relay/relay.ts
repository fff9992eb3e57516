import { isSameIncarnation, UnreachableError, type Cluster, type NodeIdentity } from '#cluster';
import type { Packet } from '../core/packet.ts';
import type { Playlist } from '../core/playlist.ts';
import type { OutputStream, RelayedRun } from '../core/output-stream.ts';
import type { Track } from '../core/track.ts';
import { BackOff } from '../lib/back-off.ts';
import { pause } from '../lib/pause.ts';
import type { Logger } from '../log/log.ts';
import { RELAY_SILENCE_MS } from '../directory/relay-path.ts';
import type { RelayTree } from '../directory/relay-tree.ts';
import { CONTINUED_MS } from '../directory/stream-names.ts';
import { OWNER_HELD_MS, StreamSender, type Sender } from '../directory/stream-sender.ts';
import type { StreamWatch } from '../directory/stream-changes.ts';
import type { Location } from '../directory/stream-directory.ts';
import { OvtError } from '../protocols/ovt/error.ts';
import type { Position } from '../protocols/ovt/message.ts';
import { OvtClient, type OvtClientOptions, type OvtSink } from '../providers/ovt/client.ts';
import { RelayClock } from './relay-clock.ts';
import { isRelayFailure, refusalOf } from './refusal.ts';
import type { RelayedStream } from './relayed-stream.ts';

export interface RelayOptions {
  readonly cluster: Pick<Cluster, 'self' | 'connect'>;
  readonly tree: Pick<RelayTree, 'self' | 'parent' | 'has' | 'unreachable'>;
  readonly log: Logger;
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
const UNUSED_MS = 10_000;
/** Limit of Node's timers. */
const LONGEST_MS = 2 ** 31 - 1;
/** Between attempts at a node that owns the stream by the directory, but does not serve it. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1000;

/**
 * One output stream of another node, for viewers of this node and for nodes that relay it in turn. The owner sends it, or a node
 * that relays it. The relay follows the stream from owner to owner, and ends `UNUSED_MS` after its last viewer or node has left.
 */
export class Relay implements OvtSink {
  readonly #stream: RelayedStream;
  readonly #options: RelayOptions;
  readonly #log: Logger;
  readonly #clock = new RelayClock();
  readonly #sender: StreamSender;
  readonly #end = new AbortController();
  readonly #onClose: () => void;
  #output: OutputStream | undefined;
  #client: OvtClient | undefined;
  #playing: Promise<void> | undefined;
  #watching: StreamWatch | undefined;
  /** Aborted when the stream stops playing. */
  #interrupted: AbortController | undefined;
  #unused: NodeJS.Timeout | undefined;

  /** @param onClose called once */
  constructor(stream: RelayedStream, { owner }: Location, options: RelayOptions, onClose: () => void) {
    this.#stream = stream;
    this.#sender = new StreamSender(options.tree, stream.key, owner);
    this.#options = options;
    this.#log = options.log.child({ stream: `${stream.application.internalName}/${stream.name}` });
    this.#onClose = onClose;
  }

  /**
   * Resolves when the relay is announced on this node.
   * @throws OvtError, UnreachableError why there is none; then it is closed
   */
  async open(): Promise<OutputStream> {
    try {
      this.#playing = this.#follow(OPEN_MS, { owner: this.#sender.owner, unreachableMs: OWNER_HELD_MS });
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
    this.#log.info({ event: 'stream.relayed', node: this.#sender.next.node.id }, 'relayed from another node');
    this.#watch(output);
  }

  packet(packet: Packet): void {
    this.#output?.write(packet);
  }

  /** Handles the loss of the sender, or of the connection to it. */
  end(reason: string, forGood: boolean): void {
    // without an owner no sender gets anything: then this one is as good as any other
    this.#interrupt(reason, { forGood, isToBlame: !forGood && this.#stream.owner !== undefined });
  }

  #interrupt(reason: string, { forGood = false, isToBlame = false } = {}): void {
    const { parent } = this.#sender;
    if (parent !== undefined && isToBlame) this.#sender.refused(parent, 'failed');
    else this.#sender.begin();
    this.#client = undefined;
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

  /** Leaves a parent that is about to stop, has stopped, or has restarted. */
  leaveGone(): void {
    const { parent } = this.#sender;
    if (parent !== undefined && !this.#options.tree.has(parent)) this.#leave(`node ${parent.id} is going`);
  }

  async #continue(wanted: Wanted): Promise<void> {
    await this.#follow(CONTINUED_MS, wanted);
    if (this.#end.signal.aborted) return;
    if (this.#output !== undefined) this.#output.interrupted = false;
    this.#log.info({ node: this.#sender.next.node.id }, 'the relayed stream continues');
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
  async #follow(withinMs: number, { owner: known, forGood = false, unreachableMs = withinMs }: Wanted): Promise<void> {
    const { signal } = this.#end;
    const watch = this.#stream.watch();
    try {
      if (known === undefined) await this.#stream.catchUp();
      const since = performance.now();
      const pauses = new BackOff(LONGEST_PAUSE_MS, FIRST_PAUSE_MS);
      for (let owner = known ?? this.#stream.owner; !signal.aborted; owner = this.#stream.owner) {
        const failure = owner === undefined ? new OvtError('no node has the stream') : await this.#search(owner);
        if (failure === undefined || signal.aborted) return this.#stay(watch);
        const left = since + (failure instanceof UnreachableError ? unreachableMs : withinMs) - performance.now();
        if (left <= 0) throw failure;
        if (forGood && !this.#stream.isOwned) throw new OvtError('the stream has ended');
        if (await watch.next(owner === undefined ? left : Math.min(pauses.next(), left), signal)) pauses.reset();
      }
    } finally {
      if (this.#watching !== watch) watch.close();
    }
  }

  #stay(watch: StreamWatch): void {
    if (this.#client === undefined || this.#end.signal.aborted) return;
    const { signal } = (this.#interrupted = new AbortController());
    this.#watching = watch;
    void this.#followOwner(watch, signal);
    this.#lookForPlace(signal).catch((error: Error) =>
      this.#log.error(
        { err: error },
        'a better node for a relayed stream could not be looked for: it stays where it is',
      ),
    );
  }

  /** Leaves for a new owner as soon as the directory names one, since the silence of a dead host takes longer to notice. */
  async #followOwner(watch: StreamWatch, signal: AbortSignal): Promise<void> {
    for (;;) {
      await watch.next(LONGEST_MS, signal);
      if (signal.aborted) return;
      const now = this.#stream.owner;
      if (now !== undefined && this.#sender.moved(now)) return this.#leave(`node ${now.id} has the stream now`);
    }
  }

  /** Moves to the sender that the relay tree prefers, now and then, until `signal` is aborted. */
  async #lookForPlace(signal: AbortSignal): Promise<void> {
    for (;;) {
      await pause(this.#sender.lookInMs, signal);
      if (signal.aborted) return;
      const { node: present } = this.#sender.next;
      for (let asks = this.#sender.look(); asks;) asks = await this.#askForBetter(present, signal);
    }
  }

  /** @returns whether yet another node is to be asked */
  async #askForBetter(present: NodeIdentity, signal: AbortSignal): Promise<boolean> {
    const asked = this.#sender.next;
    try {
      if (!isSameIncarnation(asked.node, present)) {
        await this.#replaceSender(asked);
        return false;
      }
      // the owner sends the stream already: a few bytes tell whether it has room
      (await this.#connect(asked)).close();
      if (!signal.aborted) this.#sender.sends(asked.node);
      return false;
    } catch (error) {
      if (!isRelayFailure(error)) throw error;
      return !signal.aborted && this.#sender.refused(asked.node, refusalOf(error));
    }
  }

  /**
   * Makes another node send the stream. The present sender is kept until that node sends all that is missing.
   * @throws OvtError, UnreachableError, UnavailableError why the present sender stays
   */
  async #replaceSender(asked: Sender): Promise<void> {
    const present = this.#client;
    const tracks = this.#output?.tracks;
    const client = await this.#connect(asked);
    await client.play({
      begin: (complete) => {
        const isAsBefore =
          present !== undefined &&
          this.#client === present &&
          this.#sender.next === asked &&
          this.#output?.tracks === tracks;
        if (!complete || !isAsBefore) throw new OvtError('the stream would not go on where it is');
        present.close();
        this.#client = client;
        this.#sender.sends(asked.node);
        this.#log.info({ node: asked.node.id }, 'the relayed stream comes from a better node');
      },
      tracks: (changed, playlists) => this.tracks(changed, playlists),
      packet: (packet) => this.packet(packet),
      end: (reason, forGood) => this.end(reason, forGood),
    });
  }

  /** Asks one node after the other. @returns why none sends the stream, undefined when one does */
  async #search(owner: NodeIdentity): Promise<Error | undefined> {
    this.#sender.begin(owner);
    for (;;) {
      const asked = this.#sender.next;
      try {
        await this.#ask(asked);
        return undefined;
      } catch (error) {
        if (!isRelayFailure(error)) throw error;
        if (!this.#sender.refused(asked.node, refusalOf(error))) return error;
      }
    }
  }

  async #ask(asked: Sender): Promise<void> {
    const client = await this.#connect(asked);
    this.#client = client;
    if (this.#end.signal.aborted) return client.close();
    await client.play(this);
    // it may have ended at once
    if (this.#client === client) this.#sender.sends(asked.node);
  }

  /** @throws OvtError, UnreachableError, UnavailableError why a node does not have the stream */
  async #connect({ node, role }: Sender): Promise<OvtClient> {
    const path = this.#stream.pathAt(role === 'forced owner' ? '/relay/' : '/branch/');
    const stream = await this.#options.cluster.connect(node, path, CONNECT_TIMEOUT_MS);
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
