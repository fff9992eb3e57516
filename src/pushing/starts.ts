import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { StartCaches } from '../core/start-caches.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import { PUSH } from './kind.ts';

/**
 * Caches the start of streams for which pushes wait: claiming a task takes longer than the first frame to arrive.
 * @returns undo
 */
export function keepStarts(registry: Registry, definitions: TaskDefinitions, caches: StartCaches): () => void {
  const onOutput = (output: OutputStream, application: Application): void => {
    const isMapped = application.config.publishers.push?.streamMap?.enable === true;
    if (isMapped || definitions.in(PUSH, application).length > 0) caches.hold(output)();
  };
  registry.on('output', onOutput);
  return () => registry.off('output', onOutput);
}
