import Type from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';
import type { Source } from '../../core/source.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { Logger } from '../../log/log.ts';
import type { StreamChanges } from '../../directory/stream-changes.ts';
import type { StreamNames } from '../../directory/stream-names.ts';
import type { PlacedKind, Task } from '../../tasks/kind.ts';
import { LocalClock } from '../intake/local-clock.ts';
import { leaveOwnStream, publishOwnName } from '../../tasks/own-name.ts';
import { PullError } from './error.ts';
import { firstSource } from './first-source.ts';
import { Opening } from './opening.ts';
import { Pull, type PullOptions } from './pull.ts';
import { enabledProvider, pullProvider } from './provider.ts';
import { readSpec, type PullSpec } from './spec.ts';
import type { OpenSource, SourceOptions } from './source.ts';
import { UseWatch } from './use-watch.ts';

/** State for the next run, which continues with the URL that played last. */
const Progress = Type.Object({ url: Type.String() });

const Failure = Type.Object({ message: Type.String() });

export const PULL = 'pull';

/** Age after which a connection is replaced, because origins may close one on which nothing is played. */
const KEPT_MS = 1000;

export interface PullKindOptions {
  readonly names: StreamNames;
  readonly changes: StreamChanges;
  readonly open: OpenSource;
  readonly log: Logger;
}

/** Pulled streams as tasks: the id is the name of the stream. */
export class PullKind implements PlacedKind {
  readonly name = PULL;
  readonly makesStream = true;
  readonly #options: PullKindOptions;
  readonly #fromStore = new WeakSet<InputStream>();

  constructor(options: PullKindOptions) {
    this.#options = options;
  }

  isFromStore(input: InputStream): boolean {
    return this.#fromStore.has(input);
  }

  writeFailure(error: unknown): Json | undefined {
    return error instanceof PullError ? { message: error.message } : undefined;
  }

  readFailure(failure: Json): PullError {
    return new PullError(
      Value.Check(Failure, failure) ? failure.message : 'the node that should pull the stream gave no reason',
    );
  }

  async run(task: Task): Promise<void> {
    const spec = readSpec(task.spec);
    if (spec === undefined) throw new PullError('the definition cannot be read');
    const { application, persistent, isNew, name, signal } = task;
    const log = this.#options.log.child({ stream: `${application.internalName}/${name.id}` });
    // read when the source is described, by then `pull` may be set
    let pull: Pull | undefined;
    const provider = enabledProvider(application.config, spec.urls);
    const source: Source = {
      ...provider.source,
      isPulled: true,
      get url() {
        return pull?.url ?? spec.urls[0];
      },
      connection: () => pull?.connection,
    };
    const clock = new LocalClock(provider.keepsTimes);
    const open = (url: string) =>
      new Opening((signal) => this.#options.open(url, { ...sourceOptions(spec, clock, log), signal }));
    // a stream that no origin has claims no name, since unauthenticated clients may request any
    const begun = performance.now();
    let begin: PullOptions['begin'] = isNew
      ? await firstSource(spec, open, signal)
      : connecting(spec.urls, playedUrl(task.progress), open);
    let input: InputStream | undefined;
    try {
      input = await this.#publish(task, source, spec);
    } finally {
      const isOld = !isNew && performance.now() - begun > KEPT_MS;
      if (input === undefined || isOld) begin.opening?.close();
      if (isOld) begin = { at: begin.at };
    }
    if (input === undefined) return;
    if (spec.isFromStore) this.#fromStore.add(input);
    const stop = new AbortController();
    const end = (): void => stop.abort();
    task.signal.addEventListener('abort', end, { once: true });
    if (task.signal.aborted) end();
    input.once('close', end);
    const use = persistent || spec.unusedMs === 0 ? undefined : new UseWatch(input, spec.unusedMs, end);
    const onPlays = (url: string): void => {
      task.keep({ url });
      task.started();
    };
    pull = new Pull({ application, input, spec, persistent, isNew, begin, open, log, signal: stop.signal, onPlays });
    try {
      await pull.run();
      if (persistent && !task.signal.aborted) throw new PullError('its stream was ended');
    } finally {
      use?.close();
      task.signal.removeEventListener('abort', end);
      leaveOwnStream(input, task.signal, 'the stream is no longer pulled');
    }
  }

  #publish(task: Task, source: Source, spec: PullSpec): Promise<InputStream | undefined> {
    const { application, persistent, isNew } = task;
    const provider = pullProvider(application.config, spec.urls);
    const options = {
      replace: isNew && provider.replaces,
      maxConnections: provider.maxConnections,
      isPassthrough: spec.relay,
      isListed: persistent && !isNew,
    };
    return publishOwnName(task, source, options, this.#options);
  }
}

/** Connects while the name is claimed, for a run that continues another. */
function connecting(
  urls: readonly string[],
  played: string | undefined,
  open: (url: string) => Opening,
): Required<PullOptions['begin']> {
  const at = Math.max(0, urls.indexOf(played ?? ''));
  return { at, opening: open(urls[at] as string) };
}

function sourceOptions(
  { noInputFailoverMs, ignoresReports = false }: PullSpec,
  clock: LocalClock,
  log: Logger,
): Omit<SourceOptions, 'signal'> {
  return { clock, silenceMs: noInputFailoverMs || undefined, ignoresReports, log };
}

function playedUrl(progress: Json | undefined): string | undefined {
  return Value.Check(Progress, progress) ? progress.url : undefined;
}
