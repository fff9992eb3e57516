import type { Application } from '../core/application.ts';
import type { PublisherKind } from '../core/counters.ts';
import type { AlertMessage, Registry } from '../core/registry.ts';
import type { OutputStream } from '../core/stream.ts';
import type { AlertRulesConfig } from '../config/model.ts';
import type { Subject } from './notification.ts';

/** Hears what has become of a stream. */
type Tell = (subject: Subject, message: AlertMessage) => void;

/** A name in use is told of once in that time, and no more of them at once. */
const DUPLICATE_MS = 60_000;
const MAX_DUPLICATES = 100;

const READY: Partial<Record<PublisherKind, { readonly rule: 'llhlsReady' | 'hlsReady'; readonly name: string }>> = {
  llhls: { rule: 'llhlsReady', name: 'LLHLS' },
  hlsv3: { rule: 'hlsReady', name: 'HLS' },
};

/**
 * Tells what becomes of the streams of this node, as far as the rules ask for it. Relays of other nodes' streams are none:
 * those nodes tell of them.
 */
export function followStreams(registry: Registry, rules: () => AlertRulesConfig, tell: Tell): void {
  registry.on('created', (input, application) => {
    const told = ingress(application.internalName, input.name, input);
    told('INGRESS_STREAM_CREATED', 'A new ingress stream has been created');
    input.once('close', (reason) => told('INGRESS_STREAM_DELETED', `The ingress stream has been deleted: ${reason}`));
  });
  // before output streams are made of it
  registry.prependListener('input', (input, application) => {
    ingress(application.internalName, input.name, input)('INGRESS_STREAM_PREPARED', 'The ingress stream is ready');
  });
  const told = new Map<string, number>();
  registry.on('duplicate', (application, name) => {
    const now = performance.now();
    for (const [key, at] of told) if (now - at >= DUPLICATE_MS) told.delete(key);
    // encoders try again and again
    if (told.has(`${application}/${name}`) || told.size >= MAX_DUPLICATES) return;
    told.set(`${application}/${name}`, now);
    ingress(
      application,
      name,
      undefined,
    )(
      'INGRESS_STREAM_CREATION_FAILED_DUPLICATE_NAME',
      'The ingress stream has not been created because its name is in use',
    );
  });
  registry.on('outputCreated', (output, application) => {
    const told = egress(application, output);
    told('EGRESS_STREAM_CREATED', 'A new egress stream has been created');
    output.once('close', (reason) => told('EGRESS_STREAM_DELETED', `The egress stream has been deleted: ${reason}`));
  });
  registry.on('output', (output, application) => {
    if (!output.input.isRelay) egress(application, output)('EGRESS_STREAM_PREPARED', 'The egress stream is ready');
  });
  const ready = new WeakMap<OutputStream, Set<PublisherKind>>();
  registry.on('packaged', (output, application, kind) => {
    const { rule, name } = READY[kind] ?? {};
    const known = ready.get(output) ?? new Set();
    if (rule === undefined || known.has(kind) || rules().egress?.[rule] !== true) return;
    ready.set(output, known.add(kind));
    const message = { code: `EGRESS_${name}_READY`, description: `The egress stream can be played by ${name}` };
    tell({ type: 'EGRESS', application: application.internalName, name: output.name, stream: output }, message);
  });

  function ingress(application: string, name: string, stream: Subject['stream']) {
    return (code: string, description: string): void => {
      if (rules().ingress?.streamStatus === true)
        tell({ type: 'INGRESS', application, name, stream }, { code, description });
    };
  }

  function egress(application: Application, output: OutputStream) {
    return (code: string, description: string): void => {
      if (rules().egress?.streamStatus === true)
        tell(
          { type: 'EGRESS', application: application.internalName, name: output.name, stream: output },
          { code, description },
        );
    };
  }
}
