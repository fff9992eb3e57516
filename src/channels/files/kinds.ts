import { createHash } from 'node:crypto';
import type { ApplicationConfig } from '../../config/model.ts';
import { checkMultiplex, MultiplexForm } from '../multiplex/check.ts';
import type { MultiplexSpec } from '../multiplex/spec.ts';
import { checkSchedule, ScheduleForm } from '../scheduled/check.ts';
import type { ScheduleSpec } from '../scheduled/spec.ts';
import type { ChannelFileForm } from './read-file.ts';

interface NamedSpec<S> {
  /** Name of the stream. */
  readonly name: string;
  readonly spec: S;
}

/** Channels of one kind that files define. */
export interface ChannelFileKind<S = unknown> {
  readonly name: 'scheduled' | 'multiplex';
  readonly extension: string;
  readonly form: ChannelFileForm<NamedSpec<S>>;
  /** Folder of an application's files; undefined for none. */
  folder(config: ApplicationConfig): string | undefined;
  /**
   * Version of a definition: with another one the channel starts anew; with the same one it continues with its new
   * definition.
   */
  version(spec: S): string;
}

export const SCHEDULE_FILES: ChannelFileKind<ScheduleSpec> = {
  name: 'scheduled',
  extension: '.sch',
  form: {
    root: 'Schedule',
    schema: ScheduleForm,
    naming: 'stream',
    check: (json) => checkSchedule(json, Date.now()),
  },
  folder: ({ providers }) => providers.schedule?.scheduleFilesDir || undefined,
  // only the programs may change while the channel plays
  version: ({ stream }) => digest(stream),
};

export const MULTIPLEX_FILES: ChannelFileKind<MultiplexSpec> = {
  name: 'multiplex',
  extension: '.mux',
  form: { root: 'Multiplex', schema: MultiplexForm, naming: 'outputStream', check: checkMultiplex },
  folder: ({ providers }) => providers.multiplex?.muxFilesDir || undefined,
  version: digest,
};

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url');
}
