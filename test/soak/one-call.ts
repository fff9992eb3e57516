import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { TOKEN, type Kiln } from '../support/server/kiln.ts';

/** Calls the management API on a connection of its own, which is gone afterwards. @returns the status */
export async function oneCall(kiln: Kiln, method: string, path: string, body?: unknown): Promise<number> {
  const outgoing = request({
    host: '127.0.0.1',
    port: kiln.ports.api,
    agent: false,
    method,
    path,
    headers: { authorization: `Basic ${Buffer.from(TOKEN).toString('base64')}` },
  });
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'close');
  return answer.statusCode ?? 0;
}
