import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';

/** Calls a listener for each input stream of this node whose tracks are known, and for each relay of another node's stream. */
export function onStreamBegins(
  registry: Registry,
  listener: (input: InputStream, application: Application) => void,
): () => void {
  const onOutput = ({ input }: OutputStream, application: Application): void => {
    if (input.isRelay) listener(input, application);
  };
  registry.on('input', listener).on('output', onOutput).on('filesViewed', onOutput);
  return () => registry.off('input', listener).off('output', onOutput).off('filesViewed', onOutput);
}
