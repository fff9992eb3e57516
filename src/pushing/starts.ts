import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { StartCaches } from '../core/start-caches.ts';
import type { OutputStream } from '../core/stream.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import { PUSH } from './kind.ts';

/**
 * Keeps the beginning of streams that pushes wait for: the claim of a task takes longer than a first frame to come.
 * @returns ends that
 */
export function keepStarts(registry: Registry, definitions: TaskDefinitions, caches: StartCaches): () => void {
  const onOutput = (output: OutputStream, application: Application): void => {
    const isMapped = application.config.publishers.push?.streamMap?.enable === true;
    if (isMapped || definitions.in(PUSH, application).length > 0) caches.hold(output)();
  };
  registry.on('output', onOutput);
  return () => registry.off('output', onOutput);
}
