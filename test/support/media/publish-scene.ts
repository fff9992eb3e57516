import type { ExecutionContext } from 'ava';
import type { Kiln } from '../server/kiln.ts';
import { until } from '../time/until.ts';
import { MediaPublisher, type Scene } from './media-publisher.ts';

/** Publishes a scene as the stream `live` as soon as a node takes that. */
export async function publishScene(t: ExecutionContext, node: Kiln, scene: Scene): Promise<MediaPublisher> {
  const publisher = await until('the node takes the stream', () =>
    MediaPublisher.start(node.ports.rtmp, 'live', [scene]).catch((error: Error) => {
      if (/exists|BadName|Denied/i.test(error.message)) return undefined;
      throw error;
    }),
  );
  t.teardown(() => publisher.close());
  return publisher;
}
