import type { Reply } from './lua.ts';

/** What a script said, in a line. Beats and pulls are told by what matters of them, and only when that has changed. */
export class ScriptLog {
  readonly #last = new Map<string, string>();

  line(node: string, script: string, args: readonly string[], reply: Reply): string | undefined {
    const line = `  ${node} ${script} ${said(script, args, reply)}`;
    if (script !== 'beat' && script !== 'pull') return line;
    const name = `${node} ${script}`;
    if (this.#last.get(name) === line) return undefined;
    this.#last.set(name, line);
    return line;
  }
}

function said(script: string, args: readonly string[], reply: Reply): string {
  if (script === 'beat') {
    const [status, , epoch, open, , , , rows, , , asks] = reply as readonly Reply[];
    const nodes = (rows as readonly (readonly string[])[]).map(
      ([id = '', , , row, fate]) => `${/^\S+/.exec(row ?? '')?.[0] ?? id}${fate ? ` ${fate}` : ''}`,
    );
    const asked = (asks as readonly (readonly string[])[]).map(([, incarnation]) => incarnation);
    return [
      `has reported ${args[10] || '0'}, is ${status as string} in ${epoch as string}, which is ${open === 1 ? 'open' : 'closed'}`,
      `nodes ${nodes.sort().join(', ')}`,
      ...(asked.length > 0 ? [`to ask ${asked.join(', ')}`] : []),
    ].join('; ');
  }
  if (script === 'pull') {
    const [epoch, open, claims] = reply as readonly [string, number, readonly Reply[]];
    return `${epoch}, ${open === 1 ? 'open' : 'closed'}: ${JSON.stringify(claims)}`;
  }
  return `${args.join(' ')} -> ${JSON.stringify(reply)}`;
}
