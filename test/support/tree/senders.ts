import { valueOf } from '../api/exposition.ts';
import type { Kiln } from '../server/kiln.ts';
import { scrape } from '../api/prometheus.ts';

/**
 * The nodes that a node has got a relayed stream from since it was started first, the first one first. One that it came back to after
 * a silence counts once: on a busy machine any of them is silent for a while.
 */
export function sendersOf({ log }: Kiln, stream: string): string[] {
  const senders = log
    .split('\n')
    .filter((line) => line.includes(`/${stream}"`) && /relayed from another node|relayed stream continues/.test(line))
    .map((line) => (JSON.parse(line) as { node: string }).node);
  return senders.filter((node, i) => node !== senders[i - 1]);
}

/** To how many nodes a node sends the LL-HLS that they follow. */
export async function feedsOf(node: Kiln): Promise<number | undefined> {
  return valueOf((await scrape(node)).text, 'kiln_playlist_feeds', { protocol: 'llhls' });
}
