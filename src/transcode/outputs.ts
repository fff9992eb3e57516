import { resolve } from 'node:path';
import type { OutputProfilesConfig } from '../config/model.ts';
import { outputName } from '../config/output-name.ts';
import type { Application } from '../core/application.ts';
import { GopCache } from '../core/gop-cache.ts';
import type { Packet } from '../core/packet.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Logger } from '../log/log.ts';
import type { CodecInventory } from './codecs.ts';
import { Failures } from './failures.ts';
import { Overlays } from './overlays.ts';
import { ProfileOutput } from './profile-output.ts';
import { RateWatch } from './rate-watch.ts';
import { Transcoder } from './transcoder.ts';
import { decideProfiles } from './webhook.ts';

export interface OutputsOptions {
  readonly log: Logger;
  readonly inventory: CodecInventory;
  /** Base of relative paths of overlays. */
  readonly folder: string;
}

/** Limits of the media kept while the profiles are decided or overlays are loaded. */
const UNDECIDED_LIMITS = { bytes: 32 * 1024 * 1024, seconds: 30 };
/** Time after which encoders without viewers stop, if they may. */
const LINGER_MS = 10_000;

/** Makes the output streams of an input stream, one for each output profile. */
export function attachOutputs(input: InputStream, application: Application, options: OutputsOptions): void {
  const log = options.log.child({ stream: `${application.internalName}/${input.name}` });
  const bound = { ...options, log };
  const { transcodeWebhook, outputProfiles: local } = application.config;
  if (transcodeWebhook?.enable !== true && local.mediaOptions?.overlays?.enable !== true) {
    new StreamOutputs(input, application, { config: local }, bound);
    return;
  }
  const missed = new GopCache(UNDECIDED_LIMITS);
  const reader = input.read(missed);
  void prepare(input, application, bound).then(
    (prepared) => {
      reader.close();
      if (input.closed) prepared.overlays?.close();
      else new StreamOutputs(input, application, prepared, bound, missed);
    },
    (error: Error) => {
      reader.close();
      if (input.closed) return;
      application.outputsMade(input);
      alert(input, application, 'EGRESS_STREAM_CREATION_FAILED', `no output stream: ${error.message}`);
    },
  );
}

interface Prepared {
  readonly config: OutputProfilesConfig;
  readonly overlays?: Overlays;
}

/** @throws Error if the control server allows no output stream */
async function prepare(
  input: InputStream,
  application: Application,
  { folder, log }: OutputsOptions,
): Promise<Prepared> {
  const decision = await decideProfiles(input, application, log);
  if ('refused' in decision) throw new Error(decision.refused);
  const config = decision.profiles;
  const configured = config.mediaOptions?.overlays;
  if (configured?.enable !== true) return { config };
  const names = config.outputProfile.map((profile) => outputName(profile, input.name));
  return { config, overlays: await Overlays.load(resolve(folder, configured.path), names, log) };
}

function alert(
  input: InputStream,
  application: Application,
  code: 'EGRESS_STREAM_CREATION_FAILED' | 'EGRESS_TRANSCODE_FAILED_ENCODING',
  description: string,
): void {
  const messages = [{ code, description }];
  application.vhost.registry.emit('alert', { application, stream: input, name: input.name, type: 'EGRESS', messages });
}

/** All output streams of one input stream, and their encoders. Everything ends with the input. */
class StreamOutputs {
  readonly #input: InputStream;
  readonly #options: OutputsOptions;
  readonly #config: OutputProfilesConfig;
  readonly #overlays: Overlays | undefined;
  readonly #outputs: readonly ProfileOutput[];
  /** Input from before the profiles were known; undefined once it was used. */
  #missed: GopCache | undefined;
  readonly #counted = new WeakSet<OutputStream>();
  #transcoder: Transcoder | undefined;
  #rates: RateWatch | undefined;
  #linger: NodeJS.Timeout | undefined;
  #wasUsed = false;

  constructor(
    input: InputStream,
    application: Application,
    { config, overlays }: Prepared,
    options: OutputsOptions,
    missed?: GopCache,
  ) {
    this.#input = input;
    this.#options = options;
    this.#config = config;
    this.#overlays = overlays;
    this.#missed = missed;
    const failures = new Failures((description) =>
      alert(input, application, 'EGRESS_TRANSCODE_FAILED_ENCODING', description),
    );
    this.#outputs = config.outputProfile.map(
      (profile) =>
        new ProfileOutput(input, profile, {
          application,
          overlays,
          onFormats: () => this.#onFormats(),
          onFailure: (variant, reason, final) =>
            failures.add(`${variant} of output profile ${profile.name}`, reason, final),
          onRefusal: (reason) => {
            const description = `output profile ${profile.name} makes no output stream ${reason}`;
            alert(input, application, 'EGRESS_STREAM_CREATION_FAILED', description);
          },
        }),
    );
    input.on('tracks', () => this.#plan());
    input.once('close', () => this.#close());
    this.#plan();
    application.outputsMade(input);
    missed?.replay((packet) => this.#pass(packet));
    this.#missed = undefined;
    input.read({ packet: (packet) => this.#pass(packet) });
  }

  #pass(packet: Packet): void {
    for (const output of this.#outputs) output.pass(packet);
  }

  #plan(): void {
    for (const output of this.#outputs) output.plan();
    this.#countViewers();
    this.#arrange();
  }

  #arrange(): void {
    const tasks = this.#outputs.flatMap((output) => output.tasks);
    if (tasks.length === 0 && this.#transcoder === undefined) return;
    const { log, inventory } = this.#options;
    this.#transcoder ??= new Transcoder(this.#input, { inventory, decodes: this.#config.decodes, log }, this.#missed);
    this.#rates ??= new RateWatch(this.#input, (rateOf) => {
      const raised = this.#outputs.map((output) => output.raiseRates(rateOf));
      if (raised.includes(true)) this.#arrange();
    });
    const rests = !this.#isNeeded;
    for (const { output, announced, tasks: own } of this.#outputs)
      output?.setResting(rests && this.#config.onDemand && announced && own.length > 0);
    // a track added to an announced output waits for a viewer
    const waitsFor = this.#outputs.some(({ output, announced }) => output !== undefined && !announced);
    this.#transcoder.setJobs(rests && this.#config.onDemand && !waitsFor ? [] : tasks, rests);
  }

  /** Playlists are made from tracks: with new formats, they may name tracks that had no viewer before. */
  #onFormats(): void {
    // for viewers that arrive right after
    if (this.#transcoder !== undefined && this.#transcoder.pids.length > 0) return this.#restLater();
    // the transcoder may be about to report more formats
    queueMicrotask(() => {
      if (!this.#input.closed) this.#arrange();
    });
  }

  get #isNeeded(): boolean {
    if (this.#linger !== undefined || this.#isUsed) return true;
    return this.#outputs.some((one) => one.output !== undefined && !this.#mayRest(one));
  }

  /** Whether the encoders of an output may rest: on demand, or if no shared playlist names their tracks. */
  #mayRest(output: ProfileOutput): boolean {
    return this.#config.onDemand || output.encodesUnlistedAudioAlone;
  }

  get #isUsed(): boolean {
    const { onDemand } = this.#config;
    return this.#outputs.some(({ output }) => (onDemand ? output?.watched : output?.takenBesidePlaylists));
  }

  #countViewers(): void {
    for (const { output } of this.#outputs) {
      if (output === undefined || this.#counted.has(output)) continue;
      this.#counted.add(output);
      output.on('viewers', () => this.#onViewers());
      output.on('wanted', () => {
        this.#restLater();
        this.#arrange();
      });
    }
  }

  #onViewers(): void {
    const isUsed = this.#isUsed;
    if (isUsed === this.#wasUsed) return;
    this.#wasUsed = isUsed;
    if (!isUsed) return this.#restLater();
    clearTimeout(this.#linger);
    this.#linger = undefined;
    this.#arrange();
  }

  #restLater(): void {
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => {
      this.#linger = undefined;
      this.#arrange();
    }, LINGER_MS).unref();
  }

  #close(): void {
    clearTimeout(this.#linger);
    this.#rates?.close();
    this.#transcoder?.close();
    this.#overlays?.close();
    for (const output of this.#outputs) output.close();
  }
}
