import { pino } from 'pino';
import { UnreachableError, type Cluster, type NodeIdentity, type PeerHandler, type PeerStreamHandler } from '#cluster';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';

interface Line {
  readonly msg: string;
  readonly count: number;
}

/** Nodes of one process whose calls reach each other at once. Each with what its `PeerCalls` log. */
export function linkedNodes(...ids: readonly string[]) {
  const handlers = new Map<string, { readonly call: PeerHandler; readonly stream: PeerStreamHandler | undefined }>();
  return ids.map((id) => {
    const self: NodeIdentity = { id, incarnation: `of ${id}` };
    const lines: Line[] = [];
    const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const forward: Cluster['forward'] = async (to, request) => {
      const handler = handlers.get(to.id);
      if (handler === undefined) throw new UnreachableError(`there is no node ${to.id}`);
      // as the cluster port answers what its handler throws
      return await handler.call(request, self).catch(() => ({ status: 500, headers: {}, body: Buffer.alloc(0) }));
    };
    const serve: Cluster['serve'] = (call, stream) => void handlers.set(id, { call, stream });
    const calls = new PeerCalls({ serve, forward }, log);
    return { self, calls, lines, forward, handlers: () => handlers.get(id) };
  });
}
