import type { Kiln } from '../server/kiln.ts';
import { urisOf } from '../hls/playlist-uris.ts';
import { until } from '../time/until.ts';

/**
 * Compares what the playlists of a stream name, but for the oldest and the newest, on some nodes with what one of them has.
 * @returns how many files there are, and what differs
 */
export async function compareFiles(
  owner: Kiln,
  nodes: readonly Kiln[],
  master: string,
): Promise<{ readonly files: number; readonly differing: readonly string[] }> {
  const differing: string[] = [];
  let files = 0;
  for (const list of urisOf(await textOf(owner, master), master)) {
    const media = urisOf(await textOf(owner, list), list).filter((uri) => !uri.includes('.m3u8'));
    for (const pathname of media.slice(1, -2)) {
      const [own, ...others] = await Promise.all([owner, ...nodes].map((node) => bytesOf(node, pathname)));
      files += 1;
      others.forEach((other, at) => {
        if (own === undefined || other === undefined || !other.equals(own))
          differing.push(`${pathname}: ${other?.length} bytes on node ${at + 1}, ${own?.length} where the stream is`);
      });
    }
  }
  return { files, differing };
}

async function textOf(node: Kiln, path: string): Promise<string> {
  return await (await fetch(node.httpUrl(path))).text();
}

/** What a node answers as soon as it can: one that was cut off asks for what it lacks again after a moment. Undefined when there is none. */
async function bytesOf(node: Kiln, path: string): Promise<Buffer | undefined> {
  return await until(`${path} is answered`, async () => {
    const answer = await fetch(node.httpUrl(path));
    const body = Buffer.from(await answer.arrayBuffer());
    return answer.status !== 503 && { body: answer.status === 200 ? body : undefined };
  }).then(({ body }) => body);
}
