// The problems, worst first, repeats as one; and what only the user can know.

import { For, Show, createMemo, createSignal } from "solid-js";
import type { Problem, Question } from "./api";
import { duration, moment, name, percent } from "./format";
import type { Model } from "./model";

interface Group {
  first: Problem;
  all: Problem[];
}

export function Side(props: { model: Model }) {
  const { model } = props;
  const groups = createMemo<Group[]>(() => {
    const found = new Map<string, Group>();
    for (const problem of model.problems() ?? []) {
      const group = found.get(problem.signature);
      if (group) group.all.push(problem);
      else found.set(problem.signature, { first: problem, all: [problem] });
    }
    return [...found.values()];
  });
  return (
    <aside class="side" aria-label="Problems and questions">
      <For each={model.verdict()?.questions ?? []}>
        {(question) => <Card model={model} question={question} />}
      </For>
      <h2>
        Problems <span class="quiet">worst first</span>
      </h2>
      <Show
        when={model.problems()}
        fallback={<p class="quiet">{model.verdictError() ? "None." : "Explaining each …"}</p>}
      >
        <ol class="problems">
          <For each={groups()}>{(group) => <Row model={model} group={group} />}</For>
        </ol>
        <Show when={groups().length === 0}>
          <p class="quiet">No problems found.</p>
        </Show>
      </Show>
      <For each={model.verdict()?.hints ?? []}>
        {(hint) => (
          <p class="hint">
            <b>Hint:</b> {hint.text}. <span class="quiet">{hint.how}</span>
          </p>
        )}
      </For>
    </aside>
  );
}

function Row(props: { model: Model; group: Group }) {
  const [open, setOpen] = createSignal(false);
  const item = (problem: Problem) => (
    <button
      class="problem"
      aria-current={props.model.chosen() === problem.number ? "true" : undefined}
      onClick={() => void props.model.openProblem(problem.number)}
    >
      <span class={`severity s-${problem.severity}`}>{problem.severity}</span>
      <span class="length">{duration(problem.duration_ns)}</span>
      <span class="who">
        {name(problem)} <span class="quiet">at {moment(problem.start_ns)}</span>
      </span>
      <span class="sentence" title={problem.sentence}>
        {problem.sentence}
      </span>
    </button>
  );
  return (
    <li>
      {item(props.group.first)}
      <Show when={props.group.all.length > 1}>
        <button class="more" aria-expanded={open()} onClick={() => setOpen(!open())}>
          {props.group.all.length - 1} more of the same cause
        </button>
        <Show when={open()}>
          <For each={props.group.all.slice(1)}>{item}</For>
        </Show>
      </Show>
    </li>
  );
}

function Card(props: { model: Model; question: Question }) {
  const [said, setSaid] = createSignal("");
  const run = async (what: Promise<void>) => {
    setSaid("…");
    try {
      await what;
      setSaid("");
    } catch (error) {
      setSaid((error as Error).message);
    }
  };
  return (
    <section class="card" aria-label="Question">
      <h3>{props.question.text}</h3>
      <p class="quiet">
        It waited from {moment(props.question.from_ns)} for{" "}
        {duration(props.question.to_ns - props.question.from_ns)}
        {props.question.at.length > 0 ? ` at ${props.question.at.slice(0, 3).join(" < ")}` : ""}
      </p>
      <For each={props.question.possibilities}>
        {(possibility) => (
          <button
            class="choice"
            aria-pressed={possibility.chosen}
            onClick={() => void run(props.model.answer(props.question.number, possibility.choice))}
          >
            <b>{possibility.text}</b> <span class="quiet">{percent(possibility.probability)}</span>
            <span class="because">{possibility.because}</span>
            <span class="because">the root is then: {possibility.root}</span>
          </button>
        )}
      </For>
      <Show when={props.question.answer !== null}>
        <button onClick={() => void run(props.model.forget(props.question.answer!))}>
          Take the answer back
        </button>
      </Show>
      <Show when={said()}>
        <p role="status">{said()}</p>
      </Show>
    </section>
  );
}
