import { EventEmitter } from 'node:events';
import type { ApplicationConfig } from '../config/model.ts';
import { outputName } from '../config/output-name.ts';
import { kilnError } from '../errors.ts';
import { Counters } from './counters.ts';
import type { AlertMessage } from './registry.ts';
import type { Source } from './source.ts';
import { InputStream, type InputOptions } from './input-stream.ts';
import type { OutputStream } from './output-stream.ts';
import { RecordingViewers } from './recording-viewers.ts';
import type { VirtualHost } from './vhost.ts';

export interface PublishOptions extends Omit<InputOptions, 'isRelay' | 'subtitles' | 'captions'> {
  /** A new publisher replaces a live stream of the same name, instead of being rejected. */
  readonly replace: boolean;
  /** Streams of this kind of source that the application takes at once; 0 for any number. */
  readonly maxConnections: number;
}

interface ApplicationEvents {
  close: [];
}

/** `#vhost#app`, the form that messages and OVT use (docs/compatibility.md#rest-answers). */
export function internalName(vhost: string, application: string): string {
  return `#${vhost.replaceAll('#', '_')}#${application.replaceAll('#', '_')}`;
}

/** Streams under one name space and one configuration. Closing it disconnects everything. */
export class Application extends EventEmitter<ApplicationEvents> {
  readonly vhost: VirtualHost;
  readonly config: ApplicationConfig;
  /** Made on demand from the `*` template of its virtual host. */
  readonly dynamic: boolean;
  /** Revision of its stored configuration, the same on all nodes; 0 for one that is not stored. */
  readonly revision: number;
  readonly counters: Counters;
  readonly recordingViewers = new RecordingViewers();
  readonly createdTime = new Date();
  readonly #inputs = new Map<string, InputStream>();
  readonly #outputs = new Map<string, OutputStream>();
  readonly #relays = new Map<string, OutputStream>();
  readonly #fileViews = new Set<InputStream>();
  #closed = false;

  constructor(vhost: VirtualHost, config: ApplicationConfig, dynamic: boolean, revision: number) {
    super();
    this.setMaxListeners(0);
    this.vhost = vhost;
    this.config = config;
    this.dynamic = dynamic;
    this.revision = revision;
    this.counters = new Counters(vhost.counters);
  }

  get name(): string {
    return this.config.name;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Changes with each restart by a change, of it or of the virtual host, and is the same on all nodes. */
  get generation(): number {
    return Math.max(this.vhost.revision, this.revision);
  }

  get internalName(): string {
    return internalName(this.vhost.name, this.name);
  }

  /** Live input streams: those whose tracks are known, or which are listed all the same. */
  *streams(): IterableIterator<InputStream> {
    for (const input of this.#inputs.values()) if (input.listed) yield input;
  }

  stream(name: string): InputStream | undefined {
    const input = this.#inputs.get(name);
    return input?.listed === true ? input : undefined;
  }

  /** True while a source holds a name, live or about to be. */
  get inUse(): boolean {
    return this.#inputs.size > 0;
  }

  /** Output streams, by the name viewers ask for. */
  get outputs(): ReadonlyMap<string, OutputStream> {
    return this.#outputs;
  }

  /** The stream that viewers play by a name: an output stream of this node, or the relay of another node's. */
  output(name: string): OutputStream | undefined {
    return this.#outputs.get(name) ?? this.#relays.get(name);
  }

  /** Relays of other nodes' output streams, by the name viewers ask for. */
  get relays(): ReadonlyMap<string, OutputStream> {
    return this.#relays;
  }

  /** Input streams of other nodes that are played here: their relays, and views that count HLS players. */
  *elsewhere(): IterableIterator<InputStream> {
    for (const { input } of this.#relays.values()) yield input;
    yield* this.#fileViews;
  }

  /** Forms in which an input stream is played here: the stream itself if it is here, its relays and views. */
  views(name: string): InputStream[] {
    const own = this.stream(name);
    const others = [...this.elsewhere()].filter((input) => input.name === name);
    return own === undefined ? others : [own, ...others];
  }

  /**
   * Checks that a viewer of an input stream can have a session id, as far as this node knows.
   * @throws sessionRefused, sessionExists
   */
  checkSession(name: string, id: string): void {
    for (const { kicked } of this.views(name)) if (kicked.has(id)) throw kilnError('sessionRefused', id);
    if (this.views(name).some((view) => view.session(id) !== undefined)) throw kilnError('sessionExists', id);
  }

  /**
   * Whether a source would get the name on this node.
   * @throws what `publish` does
   */
  check(name: string, source: Source, { replace, maxConnections }: PublishOptions): void {
    if (this.#closed) throw kilnError('applicationNotFound', this.vhost.name, this.name);
    if (this.vhost.registry.draining) throw kilnError('nodeDraining');
    const present = this.#inputs.get(name);
    if (present !== undefined && !replace && !present.isVacant) throw kilnError('streamExists');
    if (maxConnections > 0 && this.#others(source, present) >= maxConnections) {
      throw kilnError('tooManyConnections', maxConnections);
    }
  }

  /**
   * Takes the name for a source. The stream is listed once its tracks are set.
   * @throws streamExists, tooManyConnections, nodeDraining, applicationNotFound (the application is closed)
   */
  publish(name: string, source: Source, options: PublishOptions): InputStream {
    this.check(name, source, options);
    this.#inputs.get(name)?.close('another publisher took over the name');
    const { subtitles, captions }: Partial<ApplicationConfig> = options.isPassthrough === true ? {} : this.config;
    const input = new InputStream(name, source, this.counters, { subtitles, captions, ...options });
    this.#inputs.set(name, input);
    const uncount = input.hasStandby ? undefined : input.counters.source(source.kind);
    input.on('trouble', (code, description) => this.#alert(input, { code, description }));
    input.once('tracks', () => this.vhost.registry.emit('input', input, this));
    input.once('close', () => {
      uncount?.();
      if (this.#inputs.get(name) === input) this.#inputs.delete(name);
      this.vhost.registry.emit('starting', this, input);
    });
    this.vhost.registry.emit('created', input, this);
    this.vhost.registry.emit('starting', this, input);
    return input;
  }

  #alert(input: InputStream, message: AlertMessage): void {
    const { name } = input;
    this.vhost.registry.emit('alert', { application: this, stream: input, name, type: 'INGRESS', messages: [message] });
  }

  /** The output streams of an input are made, as far as any are: viewers wait for no other. */
  outputsMade(input: InputStream): void {
    input.hasOutputs = true;
    this.vhost.registry.emit('starting', this, input);
  }

  /** Whether an output stream is to come of an input that is here: its tracks are not known, or its encoders not ready. */
  isStarting(name: string): boolean {
    const output = this.#outputs.get(name);
    if (output !== undefined) return !output.announced && output.tracks.length === 0;
    for (const input of this.#inputs.values()) if (!input.hasOutputs && this.mayPutOut(input.name, name)) return true;
    return false;
  }

  /** Whether an input stream may have an output stream of a name. What a control server answers is not known before. */
  mayPutOut(input: string, name: string): boolean {
    if (input === name) return true;
    const { outputProfiles, transcodeWebhook } = this.config;
    if (transcodeWebhook?.enable === true) return name.includes(input);
    return outputProfiles.outputProfile.some((profile) => outputName(profile, input) === name);
  }

  /**
   * Creates an output stream of `input`; `announce` shows it to the publishers.
   * @throws streamExists when another stream of the application puts out that name, streamNotFound when
   * `input` has ended
   */
  addOutput(input: InputStream, name: string): OutputStream {
    if (input.closed) throw kilnError('streamNotFound', `${this.internalName}/${input.name}`);
    if (this.#outputs.has(name)) throw kilnError('streamExists');
    const output = input.addOutput(name);
    this.#outputs.set(name, output);
    output.once('close', () => this.#outputs.delete(name));
    this.vhost.registry.emit('outputCreated', output, this);
    return output;
  }

  /**
   * Creates the relay of another node's output stream; `announce` shows it to the publishers. The `close` of its input
   * stream ends it.
   * @param input name of the input stream over there
   * @throws streamExists when there is one, applicationNotFound (the application is closed)
   */
  relay(input: string, output: string, source: Source): OutputStream {
    if (this.#closed) throw kilnError('applicationNotFound', this.vhost.name, this.name);
    if (this.#relays.has(output)) throw kilnError('streamExists');
    const relay = new InputStream(input, source, this.counters, { isRelay: true }).addOutput(output);
    this.#relays.set(output, relay);
    relay.once('close', () => this.#relays.delete(output));
    return relay;
  }

  /**
   * Lists and counts viewers of another node's output stream who play its files: nothing can be read from the answer. The
   * `close` of its input stream ends it.
   * @param input name of the input stream over there
   */
  viewFiles(input: string, output: string, source: Source): OutputStream {
    const view = new InputStream(input, source, this.counters, { isRelay: true });
    this.#fileViews.add(view);
    view.once('close', () => this.#fileViews.delete(view));
    const viewed = view.addOutput(output);
    this.vhost.registry.emit('filesViewed', viewed, this);
    return viewed;
  }

  /** Shows an output stream to the publishers, when its tracks and playlists are set. */
  announce(output: OutputStream): void {
    output.announced = true;
    this.vhost.registry.emit('output', output, this);
  }

  /**
   * Ends every stream and with it every session. Idempotent.
   * @param continued streams may go on elsewhere, under the same configuration
   */
  close(reason: string, { continued = false } = {}): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const input of [...this.#inputs.values()]) {
      if (continued) input.close(reason);
      else input.end(reason);
    }
    for (const input of [...this.elsewhere()]) input.close(reason);
    this.emit('close');
    this.removeAllListeners();
  }

  /** Streams from the same kind of source, but for the one to be replaced. */
  #others(source: Source, replaced: InputStream | undefined): number {
    let count = 0;
    for (const input of this.#inputs.values()) {
      if (input !== replaced && !input.isVacant && input.source.kind === source.kind) count++;
    }
    return count;
  }
}
