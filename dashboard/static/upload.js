// Sends the file of a form as the body of a PUT, which no form can do, and shows how far it is.
// A form that makes what the file is for (data-makes) is sent first.
"use strict";

for (const form of document.querySelectorAll("form[data-then]")) {
  form.querySelector("button").disabled = false;
  form.addEventListener("submit", (event) => {
    const file = form.querySelector("input[type=file]").files[0];
    const makes = "makes" in form.dataset;
    if (!makes || file) event.preventDefault();
    if (file && makes) make(form, file);
    else if (file) send(form, file, form.action, form.dataset.then);
  });
}

async function make(form, file) {
  form.querySelector("button").disabled = true;
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
  const made = answer && answer.ok && answer.redirected;
  // What was refused is sent again as a form, whose page says why.
  if (made) send(form, file, `${answer.url}/data`, answer.url);
  else form.submit();
}

function send(form, file, to, then) {
  const bar = form.querySelector("progress");
  const said = form.querySelector("output");
  const button = form.querySelector("button");
  const request = new XMLHttpRequest();
  const stay = (event) => event.preventDefault();
  button.disabled = true;
  bar.hidden = false;
  addEventListener("beforeunload", stay);
  request.upload.addEventListener("progress", (event) => {
    bar.value = (100 * event.loaded) / (event.total || 1);
    said.textContent = `${Math.floor(bar.value)} %`;
  });
  request.addEventListener("load", () => {
    removeEventListener("beforeunload", stay);
    // 201: taken, or refused by the API, which the page says.
    if ([201, 303, 401].includes(request.status)) location.assign(then);
    else fail(`The file was not taken (${request.status}).`);
  });
  request.addEventListener("error", () => fail("The connection broke off."));
  const fail = (text) => {
    removeEventListener("beforeunload", stay);
    if ("makes" in form.dataset) location.assign(then);
    said.textContent = text;
    button.disabled = false;
    bar.hidden = true;
  };
  request.open("PUT", to);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.setRequestHeader("X-CSRF-Token", form.querySelector("input[name=csrf]").value);
  request.send(file);
}
