// The filter's input: coloured as it is written, the first fault underlined at its place, completion of what was seen.

import { type Signal, useComputed, useSignal } from "@preact/signals";
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useId, useRef } from "preact/hooks";
import { check } from "./check.ts";
import { complete, type Proposal, type Seen } from "./complete.ts";
import { type Token, tokens, WORDS } from "./lexer.ts";

interface BoxProps {
  text: Signal<string>;
  seen: () => Seen;
  run: () => void;
  /** What the server says about the filter that was sent. */
  refused?: string | undefined;
}

const paint = (token: Token): string => (token.kind === "word" && WORDS.includes(token.text) ? "operator" : token.kind);

export function FilterBox({ text, seen, run, refused }: BoxProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const behind = useRef<HTMLDivElement>(null);
  const cursor = useSignal(0);
  const isOpen = useSignal(false);
  const chosen = useSignal(-1);
  const isTyping = useSignal(false);
  const isFocused = useSignal(false);
  const fault = useComputed(() => check(text.value));
  const proposals = isOpen.value ? complete(text.value, cursor.value, seen()) : [];
  const isListed = proposals.length > 0;

  const scrolled = (): void => {
    if (behind.current && input.current) behind.current.scrollLeft = input.current.scrollLeft;
  };
  const follow = (): void => {
    cursor.value = input.current?.selectionStart ?? 0;
    scrolled();
  };
  const accept = (proposal: Proposal): void => {
    const target = input.current as HTMLInputElement;
    const rest = text.value.slice(cursor.value).replace(/^[\p{L}\p{N}_]*/u, "");
    const before = text.value.slice(0, proposal.from) + proposal.insert;
    text.value = before + (proposal.insert.endsWith(" ") ? rest.replace(/^ /, "") : rest);
    const place = before.length - proposal.back;
    chosen.value = -1;
    requestAnimationFrame(() => {
      target.focus();
      target.setSelectionRange(place, place);
      isOpen.value = true;
      follow();
    });
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLInputElement>): void => {
    const picked = proposals[chosen.value];
    if (event.key === "ArrowDown" && isListed) chosen.value = (chosen.value + 1) % proposals.length;
    else if (event.key === "ArrowUp" && isListed) chosen.value = (chosen.value - 1 + proposals.length) % proposals.length;
    else if ((event.key === "Enter" || event.key === "Tab") && picked) accept(picked);
    else if (event.key === "Tab" && isListed && isTyping.value && proposals[0] && text.value) accept(proposals[0]);
    else if (event.key === "Enter") {
      isOpen.value = false;
      isFocused.value = false;
      run();
    } else if (event.key === "Escape" && isListed) {
      event.stopPropagation();
      isOpen.value = false;
    } else if ((event.key === " " && event.ctrlKey) || event.key === "ArrowDown") isOpen.value = true;
    else return;
    event.preventDefault();
  };

  // A filter that is only not finished is no fault while it is being written.
  const isUnfinished = isFocused.value && !!fault.value && fault.value.at >= text.value.length;
  const wrong = isUnfinished ? undefined : fault.value;
  const says = wrong && text.value ? wrong.message : refused;
  return (
    <div class="filter">
      <label class="hidden" for={id}>
        Filter
      </label>
      <div class={`filter-line${says ? " wrong" : ""}`}>
        <div class="filter-paint" ref={behind} aria-hidden="true">
          {painted(text.value, wrong)}
        </div>
        <input
          id={id}
          ref={input}
          class="mono"
          value={text.value}
          placeholder="Filter, for example  Year lt 1970 and Author eq 'Lem'"
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          role="combobox"
          aria-expanded={isListed}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={chosen.value >= 0 ? `${id}-${chosen.value}` : undefined}
          aria-invalid={!!says}
          aria-describedby={`${id}-says`}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            chosen.value = -1;
            isTyping.value = true;
            isFocused.value = true;
            isOpen.value = true;
            follow();
          }}
          onKeyDown={onKey}
          onKeyUp={follow}
          onClick={() => {
            follow();
            isOpen.value = true;
          }}
          onScroll={scrolled}
          onBlur={() => {
            isFocused.value = false;
            setTimeout(() => (isOpen.value = false), 150);
          }}
        />
        {isListed && (
          <ul class="completion" role="listbox" id={`${id}-list`} aria-label="Completions" style={{ "--place": `${proposals[0]?.from ?? 0}ch` }}>
            {proposals.map((proposal, index) => (
              <li
                key={proposal.label + proposal.detail}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === chosen.value}
                onPointerDown={(event) => {
                  event.preventDefault();
                  accept(proposal);
                }}
              >
                <span class="mono">{proposal.label}</span>
                <span class="detail">{proposal.detail}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      <p id={`${id}-says`} class="filter-says" role="status">
        {says && (
          <>
            {wrong && text.value && <span class="place">at {wrong.at + 1}: </span>}
            {says}
          </>
        )}
      </p>
    </div>
  );
}

function painted(text: string, wrong: { at: number; end: number } | undefined): JSX.Element[] {
  const pieces: JSX.Element[] = [];
  let at = 0;
  for (const token of tokens(text)) {
    if (token.at > at) pieces.push(<span key={at}>{text.slice(at, token.at)}</span>);
    const isWrong = wrong && token.at < wrong.end && token.end > wrong.at;
    pieces.push(
      <span key={token.at} class={`paint-${paint(token)}${isWrong ? " wrong" : ""}`}>
        {token.text}
      </span>,
    );
    at = token.end;
  }
  pieces.push(<span key={at}>{text.slice(at)}</span>);
  if (wrong && wrong.at >= text.length && text) pieces.push(<span key="end" class="wrong">{" "}</span>);
  return pieces;
}
