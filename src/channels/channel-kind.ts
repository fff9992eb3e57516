import type { ApplicationConfig } from '../config/model.ts';
import { MULTIPLEX_FILES, SCHEDULE_FILES } from './files/kinds.ts';
import { readMultiplexSpec, type MultiplexSpec } from './multiplex/spec.ts';
import { readStreamUrl, type StreamUrl } from './sources/stream-url.ts';
import { readScheduleSpec, type Item, type ScheduleSpec } from './scheduled/spec.ts';

/** A stream that a channel plays, and the element of its definition that names it. */
export interface ChannelSource {
  /** Path such as `programs[0].items[2].url`. */
  readonly element: string;
  readonly url: StreamUrl;
}

/** Common part of the two kinds of channels, which reads their definitions. */
export interface ChannelKind<S> {
  readonly name: 'scheduled' | 'multiplex';
  /** undefined for a definition of another version. */
  read(spec: unknown): S | undefined;
  isEnabled(config: ApplicationConfig): boolean;
  /** Whether files may define such channels of an application, besides the management API. */
  hasFiles(config: ApplicationConfig): boolean;
  /** Whether its stream bypasses the output profiles. */
  isBypassed(spec: S): boolean;
  sources(spec: S): ChannelSource[];
}

export const SCHEDULED: ChannelKind<ScheduleSpec> = {
  name: 'scheduled',
  read: readScheduleSpec,
  isEnabled: ({ providers }) => providers.schedule !== undefined,
  hasFiles: (config) => SCHEDULE_FILES.folder(config) !== undefined,
  isBypassed: ({ stream }) => stream.bypassTranscoder,
  sources: ({ fallbackProgram, programs }) => [
    ...programs.flatMap(({ items }, index) => streamsOf(items, `programs[${index}]`)),
    ...streamsOf(fallbackProgram?.items ?? [], 'fallbackProgram'),
  ],
};

export const MULTIPLEX: ChannelKind<MultiplexSpec> = {
  name: 'multiplex',
  read: readMultiplexSpec,
  isEnabled: ({ providers }) => providers.multiplex !== undefined,
  hasFiles: (config) => MULTIPLEX_FILES.folder(config) !== undefined,
  isBypassed: ({ bypassTranscoder }) => bypassTranscoder,
  sources: ({ sourceStreams }) => sourceStreams.flatMap(({ url }, index) => sourceOf(url, `sourceStreams[${index}]`)),
};

export const CHANNEL_KINDS = [SCHEDULED, MULTIPLEX] as const;

function streamsOf(items: readonly Item[], element: string): ChannelSource[] {
  return items.flatMap(({ url }, index) => sourceOf(url, `${element}.items[${index}]`));
}

function sourceOf(text: string, element: string): ChannelSource[] {
  const url = readStreamUrl(text);
  return url === undefined ? [] : [{ element: `${element}.url`, url }];
}
