import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Type from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';
import type { ApplicationConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Packet } from '../../core/packet.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { PlacedKind, Standby, Task } from '../../tasks/kind.ts';
import { Passthrough } from '../../providers/intake/passthrough.ts';
import type { TrackSink } from '../../providers/intake/track-writer.ts';
import { Departure } from '../sources/departure.ts';
import { ChannelError } from '../sources/error.ts';
import { readChannelFailure, writeChannelFailure } from '../sources/failure.ts';
import type { LiveSources } from '../sources/live-sources.ts';
import { leaveOwnStream, publishOwnName, type OwnNameOptions } from '../../tasks/own-name.ts';
import { readStreamUrl } from '../sources/stream-url.ts';
import { Channel } from './channel.ts';
import { SYSTEM_CLOCK } from './clock.ts';
import { FileSource } from './file-source.ts';
import { StandbySink } from './standby-sink.ts';
import type { ItemSource, TrackWishes } from './item-source.ts';
import { LiveItem } from './live-item.ts';
import { MediaFiles } from './media-files.ts';
import { programsIn } from './plan.ts';
import { readScheduleSpec, type Item, type Program, type ScheduleSpec } from './spec.ts';

export const SCHEDULED = 'scheduled';
/**
 * Files that decide whether a node suits a channel: those of programs that play within this time, up to a limit.
 * Files that play later may be delivered later.
 */
const SOON_MS = 60_000;
const LOOKED_FOR = 50;

export interface ScheduledKindOptions extends OwnNameOptions {
  readonly sources: LiveSources;
  readonly ffmpeg: () => Promise<string>;
  /** Base of a relative MediaRootDir. */
  readonly folder: string;
  readonly log: Logger;
}

/** Scheduled channels as tasks: the id is the name of the stream. */
export class ScheduledKind implements PlacedKind {
  readonly name = SCHEDULED;
  readonly makesStream = true;
  readonly #options: ScheduledKindOptions;
  /** By MediaRootDir. */
  readonly #files = new Map<string, MediaFiles>();

  constructor(options: ScheduledKindOptions) {
    this.#options = options;
  }

  writeFailure(error: unknown): Json | undefined {
    return writeChannelFailure(error);
  }

  readFailure(failure: Json): ChannelError {
    return readChannelFailure(failure);
  }

  /** Whether the node has the files that a channel plays now and soon. */
  async suits(json: Json, { providers }: ApplicationConfig): Promise<boolean> {
    const spec = readScheduleSpec(json);
    if (spec === undefined || providers.schedule === undefined) return false;
    const now = Date.now();
    const urls = new Set(fileUrlsOf(programsIn(spec.programs, now, now + SOON_MS), spec.fallbackProgram));
    const files = await this.#filesBelow(providers.schedule);
    const found = await Promise.all([...urls].slice(0, LOOKED_FOR).map((url) => files.exists(url)));
    return !found.includes(false);
  }

  /** The media files that the channels of an application may play. */
  filesOf({ config: { providers } }: Application): Promise<MediaFiles> {
    return this.#filesBelow(providers.schedule);
  }

  async #filesBelow({ mediaRootDir = '' }: { readonly mediaRootDir?: string } = {}): Promise<MediaFiles> {
    const root = mediaRootDir === '' ? '' : resolve(this.#options.folder, mediaRootDir);
    const ffmpeg = await this.#options.ffmpeg();
    const files = this.#files.get(root) ?? new MediaFiles(root, ffmpeg);
    this.#files.set(root, files);
    return files;
  }

  async run(task: Task): Promise<void> {
    const definition = this.#definitionOf(task);
    const reads = await this.#readsOf(task.application);
    if (task.signal.aborted) return;
    const input = await this.#publish(task, definition);
    if (input === undefined) return;
    const departure = departureOf(task, (packet) => run.channel.scheduledAt(packet));
    const run = this.#open(task, definition, reads, sinkOf(input, departure));
    run.announce();
    await this.#play(task, input, run, departure, () => run.channel.start());
  }

  standBy(wanted: Pick<Task, 'name' | 'spec' | 'application'>): Standby {
    const open = async () => {
      const reads = await this.#readsOf(wanted.application);
      const held: StandbySink = new StandbySink((packet) => run.channel.scheduledAt(packet));
      const run = this.#open(wanted, this.#definitionOf(wanted), reads, held);
      return { ...run, held };
    };
    const opening = open();
    const close = (): void => {
      // `ready` reports a failure to open
      opening.then(
        ({ held, close: closeRun }) => {
          held.close();
          closeRun();
        },
        () => undefined,
      );
    };
    const run = async (task: Task): Promise<void> => {
      const opened = await opening;
      const { channel, held } = opened;
      const input = await this.#publish(task, opened.definition);
      if (input === undefined) return;
      const departure = departureOf(task, (packet) => channel.scheduledAt(packet));
      const { progress } = task;
      const from = Value.Check(LeftAt, progress) ? progress.from : undefined;
      opened.announce();
      await this.#play(task, input, opened, departure, () => held.attach(sinkOf(input, departure), from));
    };
    return {
      ready: opening.then(async ({ channel, held }) => {
        await channel.start();
        await held.begun;
      }),
      run: (task) => run(task).finally(close),
      close,
    };
  }

  /** @throws ChannelError */
  #definitionOf({ application, spec: json }: Pick<Task, 'application' | 'spec'>): ChannelDefinition {
    const spec = readScheduleSpec(json);
    if (spec === undefined) throw new ChannelError('the definition cannot be read');
    const { schedule } = application.config.providers;
    if (schedule === undefined)
      throw new ChannelError('the Schedule provider is off: the application has no <Schedule/> in its Providers');
    return { spec, maxConnections: schedule.maxConnection ?? 0 };
  }

  /** Tools and settings with which channels of an application read files. */
  async #readsOf(application: Application): Promise<Reads> {
    return { files: await this.filesOf(application), ffmpeg: await this.#options.ffmpeg() };
  }

  #publish(task: Task, { spec, maxConnections }: ChannelDefinition): Promise<InputStream | undefined> {
    const isPassthrough = spec.stream.bypassTranscoder;
    const options = { replace: false, maxConnections, isPassthrough, isListed: true };
    return publishOwnName(task, { type: 'Scheduled', kind: SCHEDULED }, options, this.#options);
  }

  #open(
    { application, name }: Pick<Task, 'application' | 'name'>,
    definition: ChannelDefinition,
    { files, ffmpeg }: Reads,
    sink: TrackSink,
  ): ChannelRun {
    const log = this.#options.log.child({ module: SCHEDULED, stream: `${application.internalName}/${name.id}` });
    const faults = new FaultLog(log);
    const { spec } = definition;
    const wishes = wishesOf(spec);
    const { errorToleranceDurationMs: toleranceMs } = spec.stream;
    const open = (item: Item, position: number, onChange: () => void): ItemSource => {
      const { forwardData } = item;
      const url = readStreamUrl(item.url);
      if (url === undefined)
        return new FileSource({ files, ffmpeg, url: item.url, position, wishes, forwardData, faults, onChange });
      const { sources } = this.#options;
      const by = { application, name: name.id };
      return new LiveItem({ sources, url, by, wishes, forwardData, toleranceMs, onChange });
    };
    let isAnnounced = false;
    let item: object | undefined;
    const announce = (): void => {
      isAnnounced = true;
      if (item !== undefined) log.info(item, 'the channel plays an item');
    };
    const channel = new Channel({
      spec,
      sink,
      clock: SYSTEM_CLOCK,
      lengthOf: files.lengthOf,
      measure: (urls, signal) => files.measure(urls, undefined, signal),
      played: (url, length) => files.played(url, length),
      open,
      plays: (begun) => {
        item = begun;
        if (isAnnounced) announce();
      },
      log,
    });
    const forget = files.onLength((url) => channel.replan(url));
    const close = (): void => {
      forget();
      channel.close();
      faults.close();
    };
    return { definition, channel, log, announce, close };
  }

  /**
   * Resolves when the run is to end.
   * @param begin puts the channel on the air
   * @throws ChannelError when its stream was ended otherwise
   */
  async #play(
    task: Task,
    input: InputStream,
    { definition, channel, log, close }: ChannelRun,
    departure: Departure,
    begin: () => Promise<void> | void,
  ): Promise<void> {
    const { application, signal } = task;
    const { promise: over, resolve: end } = Promise.withResolvers<string>();
    signal.addEventListener('abort', () => end(''), { once: true });
    if (signal.aborted) end('');
    try {
      input.once('close', end);
      if (input.isPassthrough) new Passthrough(application, input, end);
      task.show(() => channel.report());
      task.changed((json) => {
        const changed = readScheduleSpec(json);
        if (changed === undefined || !isDeepStrictEqual(changed.stream, definition.spec.stream))
          return log.error('the new definition of the channel cannot be played: the former one goes on');
        channel
          .change(changed)
          .catch((error: unknown) =>
            log.error({ err: error }, 'the new definition of the channel could not be applied'),
          );
      });
      // the end of an earlier run is known by now
      if (task.progress !== undefined) task.keep(null);
      task.started();
      // describing its files may take long
      const reason = await Promise.race([Promise.resolve(begin()).then(() => over), over]);
      if (!signal.aborted) throw new ChannelError(`its stream was ended: ${reason}`);
    } finally {
      departure.close();
      close();
      leaveOwnStream(input, signal, 'the channel has ended');
    }
  }
}

interface Reads {
  readonly files: MediaFiles;
  readonly ffmpeg: string;
}

interface ChannelDefinition {
  readonly spec: ScheduleSpec;
  readonly maxConnections: number;
}

interface ChannelRun {
  readonly definition: ChannelDefinition;
  readonly channel: Channel;
  readonly log: Logger;
  /** Starts to log the items, now that the channel is on the air. */
  announce(): void;
  close(): void;
}

/** Progress that a run leaves when it is handed over: scheduled time of the first packet that it has not written. */
const LeftAt = Type.Object({ from: Type.Number() });

function departureOf(task: Task, scheduledAt: (packet: Packet) => number): Departure {
  return new Departure(task, (next) => task.keep({ from: scheduledAt(next) }));
}

function sinkOf(input: InputStream, departure: Departure): TrackSink {
  return {
    setTracks: (tracks) => input.setTracks(tracks),
    write: (packet) => {
      if (!departure.passes(packet)) return;
      input.counters.received(packet.data.length);
      input.write(packet);
    },
  };
}

/** Without an audio map a channel takes the first audio track of each item. */
function wishesOf({ stream: { videoTrack, audioTrack, audioMap } }: ScheduleSpec): TrackWishes {
  if (!audioTrack) return { video: videoTrack, audio: [] };
  return { video: videoTrack, audio: audioMap.length > 0 ? audioMap : [{ name: 'Audio' }] };
}

function fileUrlsOf(programs: readonly Program[], fallbackProgram: ScheduleSpec['fallbackProgram']): string[] {
  const items = [...programs.flatMap((program) => program.items), ...(fallbackProgram?.items ?? [])];
  return items.map(({ url }) => url).filter((url) => readStreamUrl(url) === undefined);
}
