import type { InputStream } from '../core/input-stream.ts';
import type { Source } from '../core/source.ts';
import { KilnError } from '../errors.ts';
import type { StreamChanges } from '../directory/stream-changes.ts';
import type { ClaimedPublishOptions, StreamNames } from '../directory/stream-names.ts';
import { TaskEnd, type Task } from './kind.ts';

/** Time within which a name that its dead owner still holds becomes free. */
const NAME_MS = 10_000;

export interface OwnNameOptions {
  readonly names: StreamNames;
  readonly changes: StreamChanges;
}

/**
 * Takes the name of a task's stream: the id of the task. A task that goes on after another owner waits for the name.
 * @returns undefined when the name is still in use and the task is not persistent, or when the task has ended
 * @throws errors of StreamNames.publish()
 */
export async function publishOwnName(
  task: Pick<Task, 'application' | 'persistent' | 'isNew' | 'name' | 'signal'>,
  source: Source,
  options: Omit<ClaimedPublishOptions, 'silence' | 'signal'>,
  { names, changes }: OwnNameOptions,
): Promise<InputStream | undefined> {
  const { application, persistent, isNew, name, signal } = task;
  const watch = changes.watch(application, (input) => input === name.id);
  try {
    for (const until = performance.now() + NAME_MS; ;) {
      try {
        return await names.publish(application, name.id, source, { ...options, silence: 'stop', signal });
      } catch (error) {
        if (signal.aborted) return undefined;
        const isTaken = error instanceof KilnError && error.code === 'streamExists';
        if (isNew || !isTaken) throw error;
        if (performance.now() >= until) {
          if (persistent) throw error;
          return undefined;
        }
      }
      await watch.next(Math.max(0, until - performance.now()), signal);
      if (signal.aborted) return undefined;
    }
  } finally {
    watch.close();
  }
}

/** Ends the stream of a task's run: so that another node can continue it if the task goes on, otherwise for good. */
export function leaveOwnStream(input: InputStream, signal: AbortSignal, reason: string): void {
  const end = signal.reason instanceof TaskEnd ? signal.reason : undefined;
  const goesOn = end !== undefined && end.reason !== 'removed' && end.reason !== 'applicationClosed';
  if (end?.reason === 'handedOver') input.handsOver = true;
  if (goesOn) input.close(end.message);
  else input.end(end?.message ?? reason);
}
