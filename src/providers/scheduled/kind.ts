import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Json } from '#cluster';
import type { ApplicationConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { InputStream } from '../../core/stream.ts';
import { FaultLog, type Logger } from '../../log.ts';
import type { PlacedKind, Task } from '../../tasks/kind.ts';
import { Passthrough } from '../intake/passthrough.ts';
import { ChannelError } from '../placed/error.ts';
import { readChannelFailure, writeChannelFailure } from '../placed/failure.ts';
import type { LiveSources } from '../placed/live-sources.ts';
import { leaveOwnStream, publishOwnName, type OwnNameOptions } from '../placed/own-name.ts';
import { readStreamUrl } from '../placed/stream-url.ts';
import { Channel } from './channel.ts';
import { SYSTEM_CLOCK } from './clock.ts';
import { FileSource } from './file-source.ts';
import type { ItemSource, TrackWishes } from './item-source.ts';
import { LiveItem } from './live-item.ts';
import { MediaFiles } from './media-files.ts';
import { readScheduleSpec, type Item, type ScheduleSpec } from './spec.ts';

export const SCHEDULED = 'scheduled';
/** Files of a channel that are looked for to find out whether a node has them. */
const LOOKED_FOR = 50;

export interface ScheduledKindOptions extends OwnNameOptions {
  readonly sources: LiveSources;
  /** Path of ffmpeg. */
  readonly ffmpeg: () => Promise<string>;
  /** What a relative MediaRootDir begins with. */
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

  /** Whether the node has the files of a channel. */
  async suits(json: Json, { providers }: ApplicationConfig): Promise<boolean> {
    const spec = readScheduleSpec(json);
    if (spec === undefined || providers.schedule === undefined) return false;
    const urls = new Set(fileUrlsOf(spec));
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
    const { application, name, signal } = task;
    const spec = readScheduleSpec(task.spec);
    if (spec === undefined) throw new ChannelError('the definition cannot be read');
    const { schedule } = application.config.providers;
    if (schedule === undefined)
      throw new ChannelError('the Schedule provider is off: the application has no <Schedule/> in its Providers');
    const files = await this.filesOf(application);
    const ffmpeg = await this.#options.ffmpeg();
    if (signal.aborted) return;
    const input = await publishOwnName(
      task,
      { type: 'Scheduled', kind: SCHEDULED },
      {
        replace: false,
        maxConnections: schedule.maxConnection ?? 0,
        isPassthrough: spec.stream.bypassTranscoder,
        isListed: true,
      },
      this.#options,
    );
    if (input === undefined) return;
    const log = this.#options.log.child({ module: SCHEDULED, stream: `${application.internalName}/${name.id}` });
    const faults = new FaultLog(log);
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
    const channel = new Channel({
      spec,
      sink: sinkOf(input),
      clock: SYSTEM_CLOCK,
      lengthOf: files.lengthOf,
      measure: (urls, signal) => files.measure(urls, undefined, signal),
      played: (url, length) => files.played(url, length),
      open,
      log,
    });
    const forget = files.onLength(() => channel.replan());
    try {
      await this.#play(task, input, spec, channel, log);
    } finally {
      forget();
      channel.close();
      faults.close();
      leaveOwnStream(input, signal, 'the channel has ended');
    }
  }

  /** Resolves when the run is to end. @throws ChannelError when its stream was ended by others */
  async #play(task: Task, input: InputStream, spec: ScheduleSpec, channel: Channel, log: Logger): Promise<void> {
    const { application, signal } = task;
    const { promise: over, resolve: end } = Promise.withResolvers<string>();
    signal.addEventListener('abort', () => end(''), { once: true });
    if (signal.aborted) return;
    input.once('close', end);
    if (input.isPassthrough) new Passthrough(application, input, end);
    task.show(() => channel.report());
    task.changed((json) => {
      const changed = readScheduleSpec(json);
      if (changed === undefined || !isDeepStrictEqual(changed.stream, spec.stream))
        return log.error('the new definition of the channel cannot be played: the former one goes on');
      void channel.change(changed);
    });
    task.started();
    // what its files are like may take long to find out
    const reason = await Promise.race([channel.start().then(() => over), over]);
    if (!signal.aborted) throw new ChannelError(`its stream was ended: ${reason}`);
  }
}

function sinkOf(input: InputStream): ConstructorParameters<typeof Channel>[0]['sink'] {
  return {
    setTracks: (tracks) => input.setTracks(tracks),
    write: (packet) => {
      input.counters.received(packet.data.length);
      input.write(packet);
    },
  };
}

/** Without an audio map a channel has the first sound of each item. */
function wishesOf({ stream: { videoTrack, audioTrack, audioMap } }: ScheduleSpec): TrackWishes {
  if (!audioTrack) return { video: videoTrack, audio: [] };
  return { video: videoTrack, audio: audioMap.length > 0 ? audioMap : [{ name: 'Audio' }] };
}

function fileUrlsOf({ programs, fallbackProgram }: ScheduleSpec): string[] {
  const items = [...programs.flatMap((program) => program.items), ...(fallbackProgram?.items ?? [])];
  return items.map(({ url }) => url).filter((url) => readStreamUrl(url) === undefined);
}
