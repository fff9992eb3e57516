import type { Kiln } from '../server/kiln.ts';
import { until } from '../time/until.ts';

export const MULTIPLEX_CHANNELS = '/v1/vhosts/default/apps/app/multiplexChannels';

interface State {
  readonly state: string;
  readonly pullingMessage?: string;
}

/** A stream of `app` as a source, with names of its tracks and what they are to be called. */
export function sourceOf(stream: string, ...tracks: readonly (readonly [from: string, to: string])[]) {
  return {
    name: stream,
    url: `stream://default/app/${stream}`,
    trackMap: tracks.map(([sourceTrackName, newTrackName]) => ({ sourceTrackName, newTrackName })),
  };
}

export function playlistOf(fileName: string, ...renditions: readonly object[]) {
  return { name: fileName, fileName, renditions };
}

/**
 * Creates a channel.
 * @param more beside the sources
 * @param output beside the name
 * @throws Error when that is refused
 */
export async function createMultiplex(
  kiln: Kiln,
  name: string,
  sourceStreams: readonly object[],
  more: object = {},
  output: object = {},
): Promise<void> {
  const made = await kiln.api(MULTIPLEX_CHANNELS, 'POST', {
    outputStream: { name, ...output },
    sourceStreams,
    ...more,
  });
  if (made.status !== 201) throw new Error(JSON.stringify(made.body));
}

/** undefined when the API cannot tell, such as while the channel has no owner that answers. */
export async function multiplexState(kiln: Kiln, name: string): Promise<State | undefined> {
  const { status, body } = await kiln.api<State>(`${MULTIPLEX_CHANNELS}/${name}`);
  return status === 200 ? { state: body.response.state, ...messageOf(body.response) } : undefined;
}

/** Waits until a channel plays. */
export function untilPlays(kiln: Kiln, name: string): Promise<boolean> {
  return until(`${name} plays`, async () => (await multiplexState(kiln, name))?.state === 'Playing');
}

function messageOf({ pullingMessage }: State): Partial<State> {
  return pullingMessage === undefined ? {} : { pullingMessage };
}
