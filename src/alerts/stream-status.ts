import type { Application } from '../core/application.ts';
import type { PublisherKind } from '../core/counters.ts';
import type { AlertMessage, Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { AlertRulesConfig } from '../config/model.ts';
import type { Subject } from './notification.ts';

type Report = (subject: Subject, message: AlertMessage) => void;

/** A rejected publisher is reported once in this time for each name, however often it tries again. */
const DUPLICATE_MS = 60_000;
/** Names that are remembered for that; further ones are not reported. */
const MAX_DUPLICATES = 100;

const READY: Partial<Record<PublisherKind, { readonly rule: 'llhlsReady' | 'hlsReady'; readonly name: string }>> = {
  llhls: { rule: 'llhlsReady', name: 'LLHLS' },
  hlsv3: { rule: 'hlsReady', name: 'HLS' },
};

/**
 * Reports changes of this node's streams that the rules ask for. Relays are left to the nodes that own the streams. Returns its
 * undo.
 */
export function followStreams(registry: Registry, rules: () => AlertRulesConfig, report: Report): () => void {
  let isOver = false;
  const duplicates = new Map<string, number>();
  const ready = new WeakMap<OutputStream, Set<PublisherKind>>();

  const onCreated = (input: InputStream, { internalName }: Application): void => {
    const { name } = input;
    ingress(internalName, name, input, 'INGRESS_STREAM_CREATED', 'A new ingress stream has been created');
    input.once('close', (reason) => {
      const text = `The ingress stream has been deleted: ${reason}`;
      ingress(internalName, name, input, 'INGRESS_STREAM_DELETED', text);
    });
  };
  const onInput = (input: InputStream, { internalName }: Application): void =>
    ingress(internalName, input.name, input, 'INGRESS_STREAM_PREPARED', 'The ingress stream is ready');
  const onDuplicate = (application: string, name: string): void => {
    const now = performance.now();
    for (const [key, at] of duplicates) if (now - at >= DUPLICATE_MS) duplicates.delete(key);
    const key = `${application}/${name}`;
    if (duplicates.has(key) || duplicates.size >= MAX_DUPLICATES) return;
    duplicates.set(key, now);
    const text = 'The ingress stream has not been created because its name is in use';
    ingress(application, name, undefined, 'INGRESS_STREAM_CREATION_FAILED_DUPLICATE_NAME', text);
  };
  const onOutputCreated = (output: OutputStream, application: Application): void => {
    egress(application, output, 'EGRESS_STREAM_CREATED', 'A new egress stream has been created');
    output.once('close', (reason) =>
      egress(application, output, 'EGRESS_STREAM_DELETED', `The egress stream has been deleted: ${reason}`),
    );
  };
  const onOutput = (output: OutputStream, application: Application): void => {
    if (!output.input.isRelay) egress(application, output, 'EGRESS_STREAM_PREPARED', 'The egress stream is ready');
  };
  const onPackaged = (output: OutputStream, { internalName }: Application, kind: PublisherKind): void => {
    const { rule, name } = READY[kind] ?? {};
    const known = ready.get(output) ?? new Set();
    if (rule === undefined || known.has(kind) || rules().egress?.[rule] !== true) return;
    ready.set(output, known.add(kind));
    const message = { code: `EGRESS_${name}_READY`, description: `The egress stream can be played by ${name}` };
    report({ type: 'EGRESS', application: internalName, name: output.name, stream: output }, message);
  };

  // before other listeners make output streams of it
  registry.prependListener('input', onInput);
  registry.on('created', onCreated).on('duplicate', onDuplicate).on('packaged', onPackaged);
  registry.on('outputCreated', onOutputCreated).on('output', onOutput);
  return () => {
    isOver = true;
    registry.off('input', onInput).off('created', onCreated).off('duplicate', onDuplicate);
    registry.off('packaged', onPackaged).off('outputCreated', onOutputCreated).off('output', onOutput);
  };

  function ingress(
    application: string,
    name: string,
    stream: InputStream | undefined,
    code: string,
    description: string,
  ): void {
    if (!isOver && rules().ingress?.streamStatus === true)
      report({ type: 'INGRESS', application, name, stream }, { code, description });
  }

  function egress({ internalName }: Application, output: OutputStream, code: string, description: string): void {
    if (!isOver && rules().egress?.streamStatus === true)
      report({ type: 'EGRESS', application: internalName, name: output.name, stream: output }, { code, description });
  }
}
