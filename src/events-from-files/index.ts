import { resolve } from 'node:path';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { Logger } from '../log/log.ts';
import type { RepeatedEvent } from './event-file.ts';
import { FollowedFile } from './followed-file.ts';
import { generate } from './generate.ts';

/** The events of one file, in the streams of the applications that name it. */
interface Source {
  readonly file: FollowedFile;
  events: readonly RepeatedEvent[];
  /** Streams, with the timers that repeat the events. */
  readonly inputs: Map<InputStream, readonly NodeJS.Timeout[]>;
}

export interface EventGeneratorOptions {
  readonly registry: Registry;
  /** Base of relative paths. */
  readonly folder: string;
  readonly log: Logger;
}

/** Repeats the events that files of applications ask for (EventGenerator), in streams that have their source here. */
export class EventGenerator {
  readonly #options: EventGeneratorOptions;
  /** By path of the file, as long as there is a stream. */
  readonly #sources = new Map<string, Source>();
  readonly #onInput = (input: InputStream, application: Application): void => this.#add(input, application);

  constructor(options: EventGeneratorOptions) {
    this.#options = options;
    options.registry.on('input', this.#onInput);
  }

  /** Idempotent. */
  close(): void {
    this.#options.registry.off('input', this.#onInput);
    for (const [path, source] of [...this.#sources]) {
      for (const input of source.inputs.keys()) stop(source, input);
      this.#closeUnused(path, source);
    }
  }

  #add(input: InputStream, { config: { eventGenerator } }: Application): void {
    if (input.isRelay || input.closed || eventGenerator?.enable !== true || eventGenerator.path === '') return;
    const path = resolve(this.#options.folder, eventGenerator.path);
    const source = this.#sources.get(path) ?? this.#open(path);
    source.inputs.set(input, []);
    start(source, input);
    input.once('close', () => {
      stop(source, input);
      this.#closeUnused(path, source);
    });
  }

  #open(path: string): Source {
    const inputs = new Map<InputStream, readonly NodeJS.Timeout[]>();
    const file = new FollowedFile(path, this.#options.log, (events) => {
      source.events = events;
      for (const input of inputs.keys()) start(source, input);
    });
    const source: Source = { file, events: [], inputs };
    this.#sources.set(path, source);
    return source;
  }

  #closeUnused(path: string, source: Source): void {
    if (source.inputs.size > 0) return;
    source.file.close();
    if (this.#sources.get(path) === source) this.#sources.delete(path);
  }
}

/** Begins to repeat what the file asks for now. */
function start({ events, inputs }: Source, input: InputStream): void {
  for (const timer of inputs.get(input) ?? []) clearInterval(timer);
  const timers = events
    .filter(({ streams }) => streams.test(input.name))
    .map(({ event, intervalMs }) => setInterval(() => generate(event, input), intervalMs).unref());
  inputs.set(input, timers);
}

function stop({ inputs }: Source, input: InputStream): void {
  for (const timer of inputs.get(input) ?? []) clearInterval(timer);
  inputs.delete(input);
}
